import WebSocketProtocol

/// Turns a byte stream into WebSocket messages, by ranges of the input wherever the bytes stay the same. Never
/// assembles a message.
///
/// Call `next` until it says `.exhausted` (or stop earlier: the offset says what was used), and hand over the unused
/// rest, at most 3 bytes, at the front of the next input. At the end of the stream call `finish` once.
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

    /// The next thing to send out of `bytes` from `offset` on; moves `offset` behind what was used.
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
            return .made(Base64.encoded(bytes, start..<offset), .whole(.text))
        case .failed(let violation):
            return .violation(violation)
        }
    }

    /// The stream ended cleanly: the unfinished last line as a message, what was cut off as a violation, or `nil`.
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
