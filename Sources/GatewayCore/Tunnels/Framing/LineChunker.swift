import ByteKernels
import WebSocketProtocol

/// `Framing.lines` from stream to messages: a line is a text message, sent in fragments as it arrives.
struct LineChunker: Equatable, Sendable {
    /// Longest line in bytes, without its end.
    let lineLimit: Int
    /// Bytes of the current line sent so far; `nil` before its first fragment.
    private var sent: Int?
    private var validator = UTF8Validator()
    /// The last input ended with a CR that waits for its LF.
    private var heldCarriageReturn = false

    init(lineLimit: Int) {
        self.lineLimit = lineLimit
    }

    mutating func next(_ bytes: RawSpan, at offset: inout Int) -> FramingStep {
        let start = offset
        let count = bytes.byteCount
        var end = start
        while end < count, bytes[byte: end] != 0x0A { end += 1 }
        let endsLine = end < count
        let next = endsLine ? end + 1 : end
        let followsReturn = end > start && bytes[byte: end - 1] == 0x0D
        if followsReturn { end -= 1 }
        self.heldCarriageReturn = followsReturn && !endsLine
        guard endsLine || end > start else { return .exhausted }
        if let violation = self.take(bytes, start..<end, endsLine: endsLine) { return .violation(violation) }
        let mark = ChunkMark(.text, startsMessage: self.sent == nil, endsMessage: endsLine)
        self.sent = endsLine ? nil : (self.sent ?? 0) + (end - start)
        offset = endsLine ? next : end
        return .chunk(start..<end, mark)
    }

    /// - Returns: what is wrong with the line so far, or `nil`.
    private mutating func take(_ bytes: RawSpan, _ range: Range<Int>, endsLine: Bool) -> FramingViolation? {
        let room = min(range.count, self.lineLimit - (self.sent ?? 0))
        // Only what fits is judged, so that the first fault is the same for every cut of the stream.
        let fitting = range.lowerBound..<range.lowerBound + room
        if self.validator.validate(bytes.extracting(fitting)) != nil { return .invalidText }
        if room < range.count { return .messageTooLong }
        return endsLine && !self.validator.isComplete ? .invalidText : nil
    }

    mutating func finish() -> FramingStep? {
        guard self.validator.isComplete else { return .violation(.invalidText) }
        guard self.sent != nil || self.heldCarriageReturn else { return nil }
        guard !self.heldCarriageReturn || (self.sent ?? 0) < self.lineLimit else { return .violation(.messageTooLong) }
        let mark = ChunkMark(.text, startsMessage: self.sent == nil, endsMessage: true)
        // A CR that no LF follows is part of the line.
        let rest: [UInt8] = self.heldCarriageReturn ? [0x0D] : []
        self.sent = nil
        self.heldCarriageReturn = false
        return .made(rest, mark)
    }
}
