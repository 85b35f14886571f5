import ByteKernels
import GatewayConfiguration
import WebSocketProtocol
import WireText

/// Splits a byte stream into WebSocket messages, by ranges of the input wherever the bytes stay the same. Never
/// assembles a message.
///
/// Call `next` until it returns `.exhausted` (or stop earlier: the offset gives the number of bytes used), and pass the unused
/// bytes, at most 3, at the front of the next input. At the end of the stream call `finish` once.
package struct StreamToMessages: Sendable {
    private enum Chunker: Sendable {
        case binary
        case text(TextChunker)
        case lines(LineChunker)
        case lengthPrefixed(LengthPrefixChunker)
        case base64
        case failed(FramingViolation)
    }

    private var chunker: Chunker
    private let messageLimit: Int

    /// - Parameter messageLimit: longest message in bytes, without default; `.max` for none. In `lines` and
    ///   `lengthPrefixed` a longer one is `.messageTooLong`; in the others, whose boundaries mean nothing, messages are
    ///   cut to fit (not below 4 bytes).
    package init(_ framing: Framing, messageLimit: Int) {
        self.messageLimit = max(messageLimit, 4)
        switch framing {
        case .binary: self.chunker = .binary
        case .text: self.chunker = .text(TextChunker(messageLimit: messageLimit))
        case .lines: self.chunker = .lines(LineChunker(lineLimit: messageLimit))
        case .lengthPrefixed: self.chunker = .lengthPrefixed(LengthPrefixChunker(messageLimit: messageLimit))
        case .base64: self.chunker = .base64
        }
    }

    /// Returns the next piece of `bytes` from `offset` on, and advances `offset`.
    package mutating func next(_ bytes: RawSpan, at offset: inout Int) -> FramingStep {
        if case .failed(let violation) = self.chunker { return .violation(violation) }
        guard offset < bytes.byteCount else { return .exhausted }
        switch self.chunker {
        case .binary:
            let start = offset
            offset += min(bytes.byteCount - start, self.messageLimit)
            return .chunk(start..<offset, .whole(.binary))
        case .text(var text):
            let step = text.next(bytes, at: &offset)
            return self.keep(.text(text), step)
        case .lines(var lines):
            let step = lines.next(bytes, at: &offset)
            return self.keep(.lines(lines), step)
        case .lengthPrefixed(var prefixed):
            let step = prefixed.next(bytes, at: &offset)
            return self.keep(.lengthPrefixed(prefixed), step)
        case .base64:
            let start = offset
            offset += min(bytes.byteCount - start, self.messageLimit / 4 * 3)
            return .replacement(self.base64(bytes.extracting(start..<offset)), .whole(.text))
        case .failed(let violation):
            return .violation(violation)
        }
    }

    private func base64(_ bytes: RawSpan) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.byteCount + 2) / 3 * 4)
        Base64.append(bytes, to: &text)
        return text
    }

    /// Ends the stream: returns the unfinished last line as a message, a truncated unit as a violation, or `nil`.
    package mutating func finish() -> FramingStep? {
        switch self.chunker {
        case .binary, .base64: return nil
        case .text(let text): return text.finish()
        case .lines(var lines):
            defer { self.chunker = .lines(lines) }
            return lines.finish()
        case .lengthPrefixed(let prefixed): return prefixed.finish()
        case .failed(let violation): return .violation(violation)
        }
    }

    private mutating func keep(_ chunker: Chunker, _ step: FramingStep) -> FramingStep {
        if case .violation(let violation) = step {
            self.chunker = .failed(violation)
        } else {
            self.chunker = chunker
        }
        return step
    }
}

/// `Framing.lengthPrefixed` from stream to messages: announced messages pass as fragments, whatever their length;
/// nothing is assembled.
private struct LengthPrefixChunker: Equatable, Sendable {
    /// Longest message in bytes.
    let messageLimit: Int
    private var prefixCount = 0
    private var length: UInt32 = 0
    /// Bytes of the current message still to come; `nil` while its length is being read.
    private var remaining: Int?
    private var started = false

    init(messageLimit: Int) {
        self.messageLimit = messageLimit
    }

    mutating func next(_ bytes: RawSpan, at offset: inout Int) -> FramingStep {
        while self.remaining == nil, offset < bytes.byteCount {
            self.length = self.length << 8 | UInt32(bytes[byte: offset])
            self.prefixCount += 1
            offset += 1
            guard self.prefixCount == 4 else { continue }
            guard Int(self.length) <= self.messageLimit else { return .violation(.messageTooLong) }
            self.remaining = Int(self.length)
        }
        guard let missing = self.remaining else { return .exhausted }
        let end = offset + min(missing, bytes.byteCount - offset)
        guard end > offset || missing == 0 else { return .exhausted }
        defer { offset = end }
        return .chunk(offset..<end, self.advance(by: end - offset, of: missing))
    }

    private mutating func advance(by count: Int, of missing: Int) -> ChunkPosition {
        let ends = count == missing
        let mark = ChunkPosition(.binary, startsMessage: !self.started, endsMessage: ends)
        self.started = !ends
        self.remaining = ends ? nil : missing - count
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

/// `Framing.lines` from stream to messages: a line is a text message, sent in fragments as it arrives.
private struct LineChunker: Equatable, Sendable {
    /// Longest line in bytes, without its end.
    private let lineLimit: Int
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
        let mark = ChunkPosition(.text, startsMessage: self.sent == nil, endsMessage: endsLine)
        self.sent = endsLine ? nil : (self.sent ?? 0) + (end - start)
        offset = endsLine ? next : end
        return .chunk(start..<end, mark)
    }

    /// - Returns: the violation in the line so far, or `nil`.
    private mutating func take(_ bytes: RawSpan, _ range: Range<Int>, endsLine: Bool) -> FramingViolation? {
        let room = min(range.count, self.lineLimit - (self.sent ?? 0))
        // Only what fits is judged, so that the first violation is the same for every split of the stream.
        let fitting = range.lowerBound..<range.lowerBound + room
        if self.validator.validate(bytes.extracting(fitting)) != nil { return .invalidText }
        if room < range.count { return .messageTooLong }
        return endsLine && !self.validator.isComplete ? .invalidText : nil
    }

    mutating func finish() -> FramingStep? {
        guard self.validator.isComplete else { return .violation(.invalidText) }
        guard self.sent != nil || self.heldCarriageReturn else { return nil }
        guard !self.heldCarriageReturn || (self.sent ?? 0) < self.lineLimit else { return .violation(.messageTooLong) }
        let mark = ChunkPosition(.text, startsMessage: self.sent == nil, endsMessage: true)
        // A CR that no LF follows is part of the line.
        let rest: [UInt8] = self.heldCarriageReturn ? [0x0D] : []
        self.sent = nil
        self.heldCarriageReturn = false
        return .replacement(rest, mark)
    }
}

/// `Framing.text` from stream to messages: each input becomes one text message of whole characters.
private struct TextChunker: Equatable, Sendable {
    /// At most this many bytes a message; never less than one character.
    let messageLimit: Int
    /// Bytes of an unfinished character that the last input was left with.
    private var heldBack = 0

    init(messageLimit: Int) {
        self.messageLimit = max(messageLimit, 4)
    }

    mutating func next(_ bytes: RawSpan, at offset: inout Int) -> FramingStep {
        let start = offset
        let end = start + min(bytes.byteCount - start, self.messageLimit)
        // Unfinished characters are left in the input, so each input begins with a character.
        var validator = UTF8Validator()
        let invalid = validator.validate(bytes.extracting(start..<end)).map { start + $0 }
        let wholeEnd = Self.wholeCharacters(bytes, start..<(invalid ?? end))
        if wholeEnd > start {
            self.heldBack = 0
            offset = wholeEnd
            return .chunk(start..<wholeEnd, .whole(.text))
        }
        guard invalid == nil else { return .violation(.invalidText) }
        self.heldBack = end - start
        return .exhausted
    }

    func finish() -> FramingStep? {
        self.heldBack > 0 ? .violation(.invalidText) : nil
    }

    /// The end of the last whole character in `range`, whose bytes are valid as far as they go.
    private static func wholeCharacters(_ bytes: RawSpan, _ range: Range<Int>) -> Int {
        for distance in 1...3 where distance <= range.count {
            let byte = bytes[byte: range.upperBound - distance]
            if byte < 0x80 { break }
            guard byte >= 0xC0 else { continue }
            // The count of leading ones is the character's length: RFC 3629 §3.
            return (~byte).leadingZeroBitCount > distance ? range.upperBound - distance : range.upperBound
        }
        return range.upperBound
    }
}

/// Position of a chunk of payload in its message.
package struct ChunkPosition: Hashable, Sendable {
    package var kind: MessageKind
    /// First chunk of its message.
    package var startsMessage: Bool
    /// Last chunk of its message.
    package var endsMessage: Bool

    @inlinable
    package init(_ kind: MessageKind, startsMessage: Bool, endsMessage: Bool) {
        self.kind = kind
        self.startsMessage = startsMessage
        self.endsMessage = endsMessage
    }

    /// A message in one piece.
    @inlinable
    package static func whole(_ kind: MessageKind) -> ChunkPosition {
        ChunkPosition(kind, startsMessage: true, endsMessage: true)
    }
}
