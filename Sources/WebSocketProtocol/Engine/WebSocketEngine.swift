import ByteKernels
import WireText

/// The frames of one WebSocket in both directions, without IO: `nextEvent` decodes received bytes in place and is
/// called until it returns `nil`; frames to send are encoded into the caller's buffer. Messages are not assembled:
/// payload is returned as it arrives.
///
/// - Source: RFC 6455 §5 to §8, RFC 7692.
public struct WebSocketEngine: ~Copyable {
    private enum State: Equatable {
        case open
        /// Valid bytes before a violation were returned; the violation is the next event.
        case failing(PeerViolation.Rule)
        case over
    }

    // Ordered for the smallest layout: every connection has an engine.

    /// Longest inflated message in bytes; `Int.max` for no limit.
    private var messageLimit: Int
    /// Payload bytes of the current data frame not processed yet.
    private var frameRemaining = 0
    /// Payload bytes of the current message so far.
    private var messageLength = 0
    /// Set if permessage-deflate was negotiated.
    private var deflate: DeflateSession?
    private var maskingKey: UInt32 = 0
    /// Payload bytes of the current frame that are unmasked but not inflated yet, because the output was full.
    private var unmaskedCount: UInt32 = 0
    /// Phase of the first payload byte that is still masked, 0 to 3.
    private var maskingPhase: UInt8 = 0
    public let role: Role
    private var state = State.open
    private var inFrame = false
    private var frameIsFinal = false
    /// The kind of the unfinished message; `nil` between messages.
    private(set) var messageKind: MessageKind?
    private var messageStarts = false
    private var validator = UTF8Validator()
    private var messageIsCompressed = false
    /// Inflated bytes of the four-byte tail of a compressed message (RFC 7692 §7.2.2).
    private var tailConsumed: UInt8 = 0
    /// Whether the byte at the position was already consumed, and is retained only so that the caller calls again.
    private var retainsLastByte = false
    /// Whether the message being sent is compressed.
    private var sendsCompressed = false

    /// - Parameter maximumMessageSize: limit for the inflated bytes of all fragments; a longer message is a violation
    ///   (1009). `nil` for no limit; negative counts as 0.
    public init(role: Role, maximumMessageSize: Int?) {
        self.role = role
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Changes the limit, also for the rest of the current message.
    package mutating func setMaximumMessageSize(_ maximumMessageSize: Int?) {
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Enables permessage-deflate as negotiated in the opening handshake.
    package mutating func startDeflate(
        _ parameters: PermessageDeflateParameters, policy: DeflatePolicy, context: DeflateContext
    ) {
        self.deflate = DeflateSession(parameters, policy: policy, role: self.role, context: context)
    }

    /// Whether the received bytes end with a complete message.
    package var isBetweenMessages: Bool {
        self.state == .open && !self.inFrame && self.messageKind == nil
    }

    /// Decodes the next event from `position` on.
    ///
    /// Except for the chunks of data within a frame, the events do not depend on how the bytes were split; valid bytes
    /// before an invalid one are returned before the violation. When `position` reaches the end of `buffer`, the engine
    /// retains nothing that it could return without further bytes.
    /// - Parameter position: advanced past the consumed bytes. The bytes from there on must be passed again unchanged,
    ///   in front of further ones.
    /// - Returns: `nil` if more bytes are needed, and after a violation or a Close.
    public mutating func nextEvent(_ buffer: inout MutableRawSpan, at position: inout Int) -> WebSocketEvent? {
        guard self.state == .open else { return self.lastEvent() }
        let start = position
        do throws(PeerViolation) {
            let event = try self.decode(&buffer, at: &position)
            // The caller must call again for the violation, so the bytes are not consumed.
            if self.state != .open, case .data = event { position = start }
            return event
        } catch {
            self.state = .over
            return .violation(error)
        }
    }

    private mutating func lastEvent() -> WebSocketEvent? {
        guard case .failing(let rule) = self.state else { return nil }
        self.state = .over
        return .violation(PeerViolation(rule))
    }

    @inline(__always)
    private mutating func decode(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        if !self.inFrame {
            let peer: Role = self.role == .client ? .server : .client
            let bits = self.deflate == nil ? ReservedBits.none : .compression
            guard let header = try FrameHeader.decode(buffer.bytes, at: position, from: peer, reservedBits: bits) else {
                return nil
            }
            if header.opcode.isControl { return try self.controlFrame(header, buffer, at: &position) }
            try self.begin(header)
            position += header.size
        }
        return self.messageIsCompressed
            ? try self.inflateNext(&buffer, at: &position) : try self.uncompressedData(&buffer, at: &position)
    }

    // MARK: Control frames

    private mutating func controlFrame(
        _ header: FrameHeader, _ buffer: borrowing MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let payload = header.controlPayload(buffer.bytes, at: position) else { return nil }
        position += header.size + header.payloadLength
        switch header.opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close:
            let (code, reason) = try ClosePayload.decode(payload)
            self.state = .over
            return .close(code, reason: reason)
        case .continuation, .text, .binary: return nil
        }
    }

    // MARK: Data frames

    @inline(__always)
    private mutating func begin(_ header: FrameHeader) throws(PeerViolation) {
        switch header.opcode {
        case .continuation:
            guard self.messageKind != nil else { throw PeerViolation(.unexpectedContinuation) }
        case .text, .binary:
            guard self.messageKind == nil else { throw PeerViolation(.unfinishedMessage) }
            self.messageKind = header.opcode == .text ? .text : .binary
            self.messageStarts = true
            self.messageLength = 0
            self.messageIsCompressed = header.isCompressed
        case .close, .ping, .pong:
            return
        }
        if !self.messageIsCompressed, header.payloadLength > self.messageLimit - self.messageLength {
            throw PeerViolation(.messageTooLong)
        }
        self.inFrame = true
        self.frameIsFinal = header.isFinal
        self.frameRemaining = header.payloadLength
        self.maskingKey = header.maskingKey ?? 0
        self.maskingPhase = 0
    }

    private mutating func uncompressedData(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        let count = min(self.frameRemaining, buffer.byteCount - position)
        guard count > 0 || self.frameRemaining == 0 else { return nil }
        let range = position..<(position + count)
        self.mask(&buffer, range)
        position += count
        self.frameRemaining -= count
        self.messageLength += count
        return .data(
            try self.chunk(
                .received(range), buffer.bytes.extracting(range), endsFrame: self.frameRemaining == 0, violation: nil)
        )
    }

    /// Masks or unmasks the next bytes of the frame in place.
    private mutating func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>) {
        guard self.role == .server, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        self.maskingPhase = UInt8(
            truncatingIfNeeded: applyMask(&payload, key: self.maskingKey, phase: Int(self.maskingPhase)))
    }

    /// - Parameter violation: the violation that follows `bytes`, if any.
    private mutating func chunk(
        _ payload: DataChunk.Payload, _ bytes: RawSpan, endsFrame: Bool, violation: PeerViolation.Rule?
    ) throws(PeerViolation) -> DataChunk {
        let kind = self.messageKind ?? .binary
        let endsMessage = endsFrame && self.frameIsFinal
        let chunk = DataChunk(
            kind: kind, payload: payload, startsMessage: self.messageStarts, endsFrame: endsFrame,
            endsMessage: endsMessage)
        if kind == .text {
            if let invalidOffset = self.validator.validate(bytes) {
                return try self.truncate(chunk, to: invalidOffset, .invalidUTF8)
            }
            if endsMessage, !self.validator.isComplete {
                return try self.truncate(chunk, to: bytes.byteCount, .invalidUTF8)
            }
        }
        if let violation { return try self.truncate(chunk, to: bytes.byteCount, violation) }
        self.messageStarts = false
        if endsFrame { self.inFrame = false }
        if endsMessage {
            self.messageKind = nil
            self.messageIsCompressed = false
        }
        return chunk
    }

    /// Returns the first `count` bytes of `chunk`, and makes the violation the next event.
    private mutating func truncate(
        _ chunk: DataChunk, to count: Int, _ rule: PeerViolation.Rule
    ) throws(PeerViolation) -> DataChunk {
        guard count > 0 else { throw PeerViolation(rule) }
        self.state = .failing(rule)
        var valid = chunk
        valid.endsFrame = false
        valid.endsMessage = false
        switch chunk.payload {
        case .received(let range): valid.payload = .received(range.lowerBound..<(range.lowerBound + count))
        case .inflated: valid.payload = .inflated(count)
        }
        return valid
    }

    /// Fast path for most messages: one complete and valid unfragmented frame of at most 65535 bytes. May be mixed with
    /// calls of `nextEvent`.
    ///
    /// - Parameter position: advanced past the message.
    /// - Returns: `nil`, with nothing changed, for anything else.
    package mutating func nextWholeMessage(_ buffer: inout MutableRawSpan, at position: inout Int) -> WholeMessage? {
        guard !self.inFrame, self.messageKind == nil, self.deflate == nil, self.state == .open else { return nil }
        let sender: Role = self.role == .server ? .client : .server
        guard let frame = PlainFrame(buffer.bytes, at: position, from: sender, limit: self.messageLimit) else {
            return nil
        }
        let key = sender == .client ? frame.maskingKey(in: buffer.bytes) : 0
        if sender == .client { frame.mask(&buffer, key) }
        if frame.isText, !frame.isValidText(in: buffer.bytes) {
            // `nextEvent` decodes it again, as received, and locates the invalid byte.
            if sender == .client { frame.mask(&buffer, key) }
            return nil
        }
        position = frame.payload.upperBound
        return WholeMessage(kind: frame.isText ? .text : .binary, payload: frame.payload)
    }

    /// Inflates the received bytes of the current frame into the shared output. Bytes for which the output had no
    /// room are passed again unmasked, so that each byte is unmasked once.
    /// - Returns: `nil` if the input gave no output.
    private mutating func inflateNext(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let deflate = self.deflate else { throw PeerViolation(.reservedBits) }
        let start = position + (self.retainsLastByte ? 1 : 0)
        let count = min(self.frameRemaining, buffer.byteCount - start, Self.inflateInputLimit)
        guard count > 0 || count == 0 && (self.frameRemaining == 0 || self.retainsLastByte) else { return nil }
        let range = start..<(start + count)
        self.mask(&buffer, (start + min(Int(self.unmaskedCount), count))..<range.upperBound)
        var used = 0
        var written = 0
        var status = deflate.inflate(buffer.bytes.extracting(range), used: &used, written: &written)
        self.unmaskedCount = UInt32(truncatingIfNeeded: count - used)
        self.frameRemaining -= used
        if status == .needsInput, self.frameRemaining == 0, self.frameIsFinal {
            var tailOffset = Int(self.tailConsumed)
            status = deflate.finishMessage(tailOffset: &tailOffset, written: &written)
            self.tailConsumed = UInt8(truncatingIfNeeded: tailOffset)
        }
        self.advance(&position, to: start + used, of: buffer.byteCount, status)
        return try self.inflated(written, deflate.context, status)
    }

    /// Most input bytes at once, so that `unmaskedCount` fits four bytes; larger than any buffer.
    private static let inflateInputLimit = 1 << 30

    /// Retains one consumed byte if the inflater has more output but no input is left, so that the caller calls again.
    private mutating func advance(_ position: inout Int, to end: Int, of count: Int, _ status: InflateStatus) {
        self.retainsLastByte = status == .outputFull && end == count && end > position
        position = self.retainsLastByte ? end - 1 : end
    }

    private mutating func inflated(
        _ written: Int, _ context: DeflateContext, _ status: InflateStatus
    ) throws(PeerViolation) -> WebSocketEvent? {
        // Below zero, the limit was lowered in the middle of the message.
        let remaining = max(0, self.messageLimit - self.messageLength)
        let count = min(written, remaining)
        let violation: PeerViolation.Rule? =
            written > remaining ? .messageTooLong : status == .corrupt ? .invalidCompressedData : nil
        let endsFrame = status == .needsInput && self.frameRemaining == 0 && violation == nil
        self.messageLength += count
        guard count > 0 || endsFrame || violation != nil else { return nil }
        let result = context.output.withRawSpan { bytes -> Result<DataChunk, PeerViolation> in
            do throws(PeerViolation) {
                let text = bytes.extracting(0..<count)
                return .success(try self.chunk(.inflated(count), text, endsFrame: endsFrame, violation: violation))
            } catch {
                return .failure(error)
            }
        }
        return .data(try result.get())
    }

    /// Size of an encoded frame in bytes.
    public func frameSize(payloadCount: Int) -> Int {
        self.role.frameSize(payloadCount: payloadCount)
    }

    /// Encodes a frame to the front of `target`, which has room for `frameSize` bytes; a client's payload is masked.
    /// - Returns: the number of bytes written.
    @discardableResult
    public func encodeFrame(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool = false, _ payload: RawSpan, keys: MaskingKeys,
        into target: inout MutableRawSpan
    ) -> Int {
        self.role.encodeFrame(opcode, isFinal: isFinal, isCompressed: isCompressed, payload, keys: keys, into: &target)
    }

    /// Compresses the payload of one data frame, if permessage-deflate was negotiated and the message is long enough.
    ///
    /// - Returns: the context with the compressed payload, to be sent with RSV1 on a message's first frame; `nil` to
    ///   send `payload` uncompressed.
    package mutating func compress(startsMessage: Bool, endsMessage: Bool, _ payload: RawSpan) -> DeflateContext? {
        guard let deflate = self.deflate else { return nil }
        if startsMessage {
            self.sendsCompressed = deflate.shouldCompress(count: payload.byteCount, isWhole: endsMessage)
        }
        guard self.sendsCompressed else { return nil }
        guard deflate.deflate(payload, endsMessage: endsMessage) else {
            // Only the first frame allocates a deflater; without memory the whole message is sent uncompressed.
            self.sendsCompressed = false
            return nil
        }
        return deflate.context
    }

    /// Settings under which a whole message of `count` bytes is compressed to the same bytes on every connection that
    /// has them; `nil` if it is sent uncompressed here, or the connection's earlier messages matter (context takeover).
    package func sharedCompression(count: Int) -> SharedCompression? { self.deflate?.sharedCompression(count: count) }
}

public enum WebSocketEvent: Equatable, Sendable {
    case data(DataChunk)
    /// Must be answered with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer's Close frame; the code is `nil` if it is empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer violated the protocol; decoding has stopped.
    case violation(PeerViolation)
}

/// A complete message of one frame, unmasked in the receive buffer; text is valid UTF-8.
package struct WholeMessage: Equatable, Sendable {
    package let kind: MessageKind
    package let payload: Range<Int>
}

/// The type of a message (RFC 6455 §5.6).
@frozen
public enum MessageKind: Sendable, Hashable {
    case text
    case binary

    /// The opcode of the message's first frame.
    package var opcode: Opcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }
}

/// A chunk of a message's payload: unmasked, inflated, and valid UTF-8 so far if it is text.
public struct DataChunk: Equatable, Sendable {
    public enum Payload: Equatable, Sendable {
        /// A range of the receive buffer.
        case received(Range<Int>)
        /// A number of bytes in the shared output of `DeflateContext`, valid until the next event.
        case inflated(Int)
    }

    public var kind: MessageKind
    public var payload: Payload
    /// Whether the chunk is the first of its message.
    public var startsMessage: Bool
    /// Whether the chunk is the last of its frame.
    public var endsFrame: Bool
    /// Whether the chunk is the last of its message.
    public var endsMessage: Bool

    /// Number of payload bytes.
    public var count: Int {
        switch self.payload {
        case .received(let range): range.count
        case .inflated(let count): count
        }
    }
}

enum InflateStatus: Equatable {
    /// All input was consumed.
    case needsInput
    /// There may be more output, even without further input.
    case outputFull
    /// The output written before the corruption is valid.
    case corrupt
}

/// Pings without a Pong yet, in the order sent.
///
/// A Pong answers the earliest ping with the same payload and every ping before it, because a peer may answer only the
/// most recent ping (RFC 6455 §5.5.3). A Pong that matches no ping is unsolicited and ignored.
public struct PendingPings: Sendable {
    /// Most pings without a Pong.
    public static let limit = 1024

    private struct Entry: Sendable {
        let number: UInt64
        let payload: [UInt8]
    }

    private var waiting: [Entry] = []

    public init() {}

    /// - Returns: `false` if the limit is reached, because the peer does not answer.
    public mutating func pingSent(_ number: UInt64, payload: [UInt8]) -> Bool {
        guard self.waiting.count < Self.limit else { return false }
        self.waiting.append(Entry(number: number, payload: payload))
        return true
    }

    /// - Returns: the pings that this Pong answers, the earliest first.
    public mutating func pongReceived(_ payload: [UInt8]) -> [UInt64] {
        guard let index = self.waiting.firstIndex(where: { $0.payload == payload }) else { return [] }
        let answered = self.waiting[...index].map(\.number)
        self.waiting.removeFirst(index + 1)
        return answered
    }
}
