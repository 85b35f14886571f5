/// What established records have to tell.
package enum RecordEvent: Equatable, Sendable {
    /// `count` bytes, at least 1, were put at the front of the caller's buffer.
    case plaintext(count: Int)
    /// close_notify.
    case closed
    /// An alert that ends the connection, with its AlertDescription.
    case alert(UInt8)
    case failed(RecordFault)
}
