import ByteKernels
import WebSocketProtocol

/// `Framing.lengthPrefixed` from stream to messages: announced messages pass as fragments, whatever their length;
/// nothing is assembled.
struct LengthPrefixChunker: Equatable, Sendable {
    /// Longest message in bytes.
    let messageLimit: Int
    private var prefixCount = 0
    private var length: UInt32 = 0
    /// Bytes of the current message still to come; `nil` while its length is being read.
    private var missing: Int?
    private var started = false

    init(messageLimit: Int) {
        self.messageLimit = messageLimit
    }

    mutating func next(_ bytes: RawSpan, at offset: inout Int) -> FramingStep {
        while self.missing == nil, offset < bytes.byteCount {
            self.length = self.length << 8 | UInt32(bytes[byte: offset])
            self.prefixCount += 1
            offset += 1
            guard self.prefixCount == 4 else { continue }
            guard Int(self.length) <= self.messageLimit else { return .violation(.messageTooLong) }
            self.missing = Int(self.length)
        }
        guard let missing = self.missing else { return .exhausted }
        let end = offset + min(missing, bytes.byteCount - offset)
        guard end > offset || missing == 0 else { return .exhausted }
        defer { offset = end }
        return .chunk(offset..<end, self.advance(by: end - offset, of: missing))
    }

    private mutating func advance(by count: Int, of missing: Int) -> ChunkMark {
        let ends = count == missing
        let mark = ChunkMark(.binary, startsMessage: !self.started, endsMessage: ends)
        self.started = !ends
        self.missing = ends ? nil : missing - count
        if ends {
            self.prefixCount = 0
            self.length = 0
        }
        return mark
    }

    func finish() -> FramingStep? {
        self.prefixCount == 0 ? nil : .violation(.unfinishedMessage)
    }
}
