/// What one read gave, in owned bytes: for the slow paths that are not worth a lent buffer.
package enum ReceivedBytes: Hashable, Sendable {
    case bytes([UInt8])
    /// The end of input.
    case end
    case failed(SystemError)
}
