import HTTPTypes

/// What a content of several parts is made of.
package enum MultipartEvent: Equatable, Sendable {
    /// A part begins; its fields.
    case partBegan(HTTPFields)
    /// More of the part's content, never empty.
    case content([UInt8])
    case partEnded
    /// The last part is over; what follows means nothing. The last event.
    case finished
    /// It cannot be told apart any more, or has ended too early. The last event.
    case violation(MultipartViolation)
}
