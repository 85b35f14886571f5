/// A piece of a data message's payload, as much as has arrived: unmasked, inflated, and if text checked to be UTF-8
/// so far.
public struct DataChunk: Equatable, Sendable {
    public enum Payload: Equatable, Sendable {
        /// In the buffer that was lent, in place.
        case received(Range<Int>)
        /// So many bytes in the scratch that was given with the agreement on compression, until the next event.
        case inflated(Int)
    }

    public var kind: MessageKind
    public var payload: Payload
    /// The first piece of its message.
    public var startsMessage: Bool
    /// The last piece of its frame.
    public var endsFrame: Bool
    /// The last piece of its message.
    public var endsMessage: Bool

    /// Bytes of payload.
    public var count: Int {
        switch self.payload {
        case .received(let range): range.count
        case .inflated(let count): count
        }
    }
}
