import ByteKernels
import GatewayConfiguration
import WebSocketProtocol
import WireText

/// Turns WebSocket messages into a byte stream. Chunks that need no change cost no copy.
///
/// Assembles only where it must: `lengthPrefixed` needs a message's whole length first, and holds at most
/// `messageLimit` bytes.
package struct MessagesToStream: Sendable {
    private let framing: Framing
    private let messageLimit: Int
    /// Bytes of the current message so far.
    private var length = 0
    private var validator = UTF8Validator()
    private var base64 = Base64Decoder()
    /// The current message in `lengthPrefixed`, while it comes in several chunks. Owns no buffer between messages.
    private var assembled: [UInt8] = []
    private var failure: FramingViolation?

    /// - Parameter messageLimit: at least 0; longest message in bytes over all its chunks, without default; `.max` for
    ///   none, which in `lengthPrefixed` still means the 4 GiB that a prefix can say, so give a limit there. A longer
    ///   message is `.messageTooLong`.
    package init(_ framing: Framing, messageLimit: Int) {
        self.framing = framing
        self.messageLimit = framing == .lengthPrefixed ? min(messageLimit, Int(UInt32.max)) : messageLimit
    }

    /// Takes the next chunk of the current message.
    /// - Parameter stream: bytes to write are appended, where the answer is `.rewritten`; otherwise left alone.
    package mutating func take(_ chunk: RawSpan, _ mark: ChunkPosition, into stream: inout [UInt8]) -> StreamDelivery {
        if let failure = self.failure { return .violation(failure) }
        guard chunk.byteCount <= self.messageLimit - self.length else { return self.fail(self.faultAtLimit(chunk)) }
        self.length = mark.endsMessage ? 0 : self.length + chunk.byteCount
        switch self.framing {
        case .binary:
            return .unchanged
        case .text:
            return self.validates(chunk, mark) ? .unchanged : self.fail(.invalidText)
        case .lines:
            guard self.validates(chunk, mark) else { return self.fail(.invalidText) }
            guard mark.endsMessage else { return .unchanged }
            stream.append(chunk)
            stream.append(0x0A)
            return .rewritten
        case .lengthPrefixed:
            self.prefix(chunk, mark, into: &stream)
            return .rewritten
        case .base64:
            let fits = self.base64.decode(chunk, into: &stream)
            guard fits, !mark.endsMessage || self.base64.finish() else { return self.fail(.invalidBase64) }
            return .rewritten
        }
    }

    /// For a chunk beyond the limit: which comes first, the limit or an earlier violation. The same for every split of
    /// the message.
    private mutating func faultAtLimit(_ chunk: RawSpan) -> FramingViolation {
        let fitting = chunk.extracting(0..<self.messageLimit - self.length)
        switch self.framing {
        case .binary, .lengthPrefixed: return .messageTooLong
        case .text, .lines: return self.validator.validate(fitting) == nil ? .messageTooLong : .invalidText
        case .base64:
            var decoded: [UInt8] = []
            return self.base64.decode(fitting, into: &decoded) ? .messageTooLong : .invalidBase64
        }
    }

    /// Binary messages are checked like text ones: the stream is promised UTF-8.
    private mutating func validates(_ chunk: RawSpan, _ mark: ChunkPosition) -> Bool {
        guard self.validator.validate(chunk) == nil else { return false }
        return !mark.endsMessage || self.validator.isComplete
    }

    private mutating func prefix(_ chunk: RawSpan, _ mark: ChunkPosition, into stream: inout [UInt8]) {
        guard mark.endsMessage else {
            self.assembled.append(chunk)
            return
        }
        let length = UInt32(truncatingIfNeeded: self.assembled.count + chunk.byteCount)
        for shift in [24, 16, 8, 0] as [UInt32] {
            stream.append(UInt8(truncatingIfNeeded: length >> shift))
        }
        stream.append(contentsOf: self.assembled)
        stream.append(chunk)
        self.assembled = []
    }

    private mutating func fail(_ violation: FramingViolation) -> StreamDelivery {
        self.failure = violation
        self.assembled = []
        return .violation(violation)
    }
}

/// How a chunk of a message is written to a byte stream.
package enum StreamDelivery: Hashable, Sendable {
    /// Write the chunk unchanged.
    case unchanged
    /// Write the appended bytes instead of the chunk, possibly none.
    case rewritten
    /// The peer broke the framing; every later chunk gets the same answer.
    case violation(FramingViolation)
}
