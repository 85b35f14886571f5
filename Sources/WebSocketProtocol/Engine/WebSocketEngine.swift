import ByteKernels

/// One WebSocket's frames, both ways, without IO: bytes are lent to `nextEvent`, which is asked until it says `nil`;
/// what is to be sent is written into room that the caller lends. Assembles nothing: payload is passed on as it
/// arrives.
///
/// - Source: RFC 6455 §5 to §8, RFC 7692.
public struct WebSocketEngine: ~Copyable {
    enum Course: Equatable {
        case open
        /// A rule was broken behind bytes that were still good: those went out first.
        case failing(PeerViolation.Rule)
        case over
    }

    // In the order that wastes no room: every connection has one of these.

    /// Longest message in bytes after inflation; `Int.max` for no limit.
    private(set) var messageLimit: Int
    /// Payload of the current data frame still to come.
    var frameLeft = 0
    /// Payload of the message so far.
    var messageLength = 0
    /// Made when permessage-deflate was agreed.
    var deflate: DeflateSession?
    private var maskingKey: UInt32 = 0
    /// Payload of the current frame that was unmasked and not used yet, as the inflater had no room.
    var unmaskedAhead: UInt32 = 0
    /// Where in the key the payload goes on that is still masked, 0 to 3.
    var phase: UInt8 = 0
    /// Ours; the peer has the other.
    public let role: Role
    private(set) var course = Course.open
    var inFrame = false
    var frameIsFinal = false
    /// The kind of the unfinished message; `nil` between messages.
    private(set) var messageKind: MessageKind?
    private var messageStarts = false
    private var validator = UTF8Validator()
    private var messageIsCompressed = false
    /// Of the four bytes that end a compressed message for the inflater (RFC 7692 §7.2.2), those given already.
    var tailGiven: UInt8 = 0
    /// Whether the byte at the position was used already, and stays only so that we are asked again.
    var holdsByteBack = false
    /// Whether the message that is being sent is compressed.
    var sendsCompressed = false

    /// - Parameter maximumMessageSize: in bytes, after inflation, over all fragments; beyond it the connection is
    ///   failed with 1009. `nil` for no limit; negative counts as 0.
    public init(role: Role, maximumMessageSize: Int?) {
        self.role = role
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Changes the limit for what comes from now on, the rest of a message that has begun included.
    package mutating func limitMessages(to maximumMessageSize: Int?) {
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Compresses and inflates from now on as agreed in the opening handshake.
    package mutating func startDeflate(
        _ parameters: PermessageDeflateParameters, policy: DeflatePolicy, share: DeflateShare
    ) {
        self.deflate = DeflateSession(parameters, policy: policy, role: self.role, share: share)
    }

    /// Whether what was received so far ends with a whole message.
    package var isBetweenMessages: Bool {
        self.course == .open && !self.inFrame && self.messageKind == nil
    }

    /// Decodes the next event from `buffer` at `position` on.
    ///
    /// The events do not depend on how the bytes were cut, but for the cuts of data within a frame: good bytes in front
    /// of a bad one are passed on before the violation. Where `position` reaches the end of `buffer`, nothing is held
    /// that could be had without further bytes.
    /// - Parameter position: moved past what was used. Bytes from there on must come again, as they are then, in front of
    ///   what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    public mutating func nextEvent(_ buffer: inout MutableRawSpan, at position: inout Int) -> WebSocketEvent? {
        guard self.course == .open else { return self.lastEvent() }
        let start = position
        do throws(PeerViolation) {
            let event = try self.decode(&buffer, at: &position)
            // The violation is still to be asked for, so the bytes must come again.
            if self.course != .open, case .data = event { position = start }
            return event
        } catch {
            self.course = .over
            return .violation(error)
        }
    }

    private mutating func lastEvent() -> WebSocketEvent? {
        guard case .failing(let rule) = self.course else { return nil }
        self.course = .over
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
            if header.opcode.isControl { return try self.control(header, buffer, at: &position) }
            try self.begin(header)
            position += header.size
        }
        return self.messageIsCompressed
            ? try self.inflateNext(&buffer, at: &position) : try self.plainData(&buffer, at: &position)
    }

    // MARK: Control frames

    private mutating func control(
        _ header: FrameHeader, _ buffer: borrowing MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let payload = header.controlPayload(buffer.bytes, at: position) else { return nil }
        position += header.size + header.payloadLength
        switch header.opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close:
            let (code, reason) = try ClosePayload.read(payload)
            self.course = .over
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
        self.frameLeft = header.payloadLength
        self.maskingKey = header.maskingKey ?? 0
        self.phase = 0
    }

    private mutating func plainData(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        let count = min(self.frameLeft, buffer.byteCount - position)
        guard count > 0 || self.frameLeft == 0 else { return nil }
        let range = position..<(position + count)
        self.mask(&buffer, range)
        position += count
        self.frameLeft -= count
        self.messageLength += count
        return .data(
            try self.chunk(.received(range), buffer.bytes.extracting(range), endsFrame: self.frameLeft == 0, fault: nil)
        )
    }

    /// Masks or unmasks the next bytes of the frame in place.
    mutating func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>) {
        guard self.role == .server, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        self.phase = UInt8(truncatingIfNeeded: applyMask(&payload, key: self.maskingKey, phase: Int(self.phase)))
    }

    /// - Parameter fault: what is wrong behind `bytes`.
    mutating func chunk(
        _ payload: DataChunk.Payload, _ bytes: RawSpan, endsFrame: Bool, fault: PeerViolation.Rule?
    ) throws(PeerViolation) -> DataChunk {
        let kind = self.messageKind ?? .binary
        let endsMessage = endsFrame && self.frameIsFinal
        let chunk = DataChunk(
            kind: kind, payload: payload, startsMessage: self.messageStarts, endsFrame: endsFrame,
            endsMessage: endsMessage)
        if kind == .text {
            if let bad = self.validator.validate(bytes) { return try self.cut(chunk, to: bad, .invalidUTF8) }
            if endsMessage, !self.validator.isComplete {
                return try self.cut(chunk, to: bytes.byteCount, .invalidUTF8)
            }
        }
        if let fault { return try self.cut(chunk, to: bytes.byteCount, fault) }
        self.messageStarts = false
        if endsFrame { self.inFrame = false }
        if endsMessage {
            self.messageKind = nil
            self.messageIsCompressed = false
        }
        return chunk
    }

    /// Lets the good bytes go out, and what is wrong behind them come next.
    private mutating func cut(
        _ chunk: DataChunk, to count: Int, _ rule: PeerViolation.Rule
    ) throws(PeerViolation) -> DataChunk {
        guard count > 0 else { throw PeerViolation(rule) }
        self.course = .failing(rule)
        var good = chunk
        good.endsFrame = false
        good.endsMessage = false
        switch chunk.payload {
        case .received(let range): good.payload = .received(range.lowerBound..<(range.lowerBound + count))
        case .inflated: good.payload = .inflated(count)
        }
        return good
    }
}
