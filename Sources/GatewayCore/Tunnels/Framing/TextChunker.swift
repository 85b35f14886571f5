import ByteKernels
import WebSocketProtocol

/// `Framing.text` from stream to messages: each input becomes one text message of whole characters.
struct TextChunker: Equatable, Sendable {
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
