/// A stretch of a data frame as it stands in the bytes given: to be forwarded as it is.
///
/// Pieces follow each other without gap, but for the control frames between them.
package struct FramePiece: Equatable, Sendable {
    /// Where it stands: header and payload, or either, or a part of the payload.
    package var range: Range<Int>
    /// How many bytes of the range are the frame's header: 2 to 14 on a frame's first piece, else 0.
    package var headerSize: Int
    /// The frame's own opcode: `.continuation` behind a message's first frame.
    package var opcode: Opcode
    package var kind: MessageKind
    /// RSV1 of the message's first frame.
    package var isCompressed: Bool
    /// Whether the frame is the last of its message.
    package var isFinal: Bool
    /// The last piece of its frame.
    package var endsFrame: Bool

    package init(
        range: Range<Int>, headerSize: Int, opcode: Opcode, kind: MessageKind, isCompressed: Bool, isFinal: Bool,
        endsFrame: Bool
    ) {
        self.range = range
        self.headerSize = headerSize
        self.opcode = opcode
        self.kind = kind
        self.isCompressed = isCompressed
        self.isFinal = isFinal
        self.endsFrame = endsFrame
    }

    /// The first piece of its frame.
    package var startsFrame: Bool { self.headerSize > 0 }
    /// The first piece of its message.
    package var startsMessage: Bool { self.startsFrame && self.opcode != .continuation }
    /// The last piece of its message.
    package var endsMessage: Bool { self.endsFrame && self.isFinal }
    /// Where payload stands, masked as it came.
    package var payloadRange: Range<Int> { (self.range.lowerBound + self.headerSize)..<self.range.upperBound }
}
