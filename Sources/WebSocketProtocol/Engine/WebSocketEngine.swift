import ByteKernels

/// One WebSocket's frames, both ways, without IO: bytes are lent to `nextEvent`, which is asked until it says `nil`; what is to be sent is
/// written into room that the caller lends. Assembles nothing: payload is passed on as it arrives.
///
/// - Source: RFC 6455 §5 to §8, RFC 7692.
public struct WebSocketEngine: ~Copyable {
    /// Ours; the peer has the other.
    public let role: Role
    /// Longest message in bytes after inflation; `Int.max` for no limit.
    let messageLimit: Int

    // What is being received.
    /// Payload of the current data frame still to come.
    private var frameLeft = 0
    private var inFrame = false
    private var frameIsFinal = false
    private var maskingKey: UInt32 = 0
    private var phase = 0
    /// The kind of the unfinished message; `nil` between messages.
    private var messageKind: MessageKind?
    private var messageStarts = false
    private var messageLength = 0
    private var validator = UTF8Validator()
    var messageIsCompressed = false
    /// Of the four bytes that end a compressed message for the inflater (RFC 7692 §7.2.2), those given already; `nil` before its last frame ended.
    private var tailGiven: Int?
    private var isOver = false
    /// Whether the message that is being sent is compressed.
    var sendsCompressed = false
    /// Made when permessage-deflate was agreed.
    var deflate: DeflateSession?

    /// - Parameter maximumMessageSize: in bytes, after inflation, over all fragments; beyond it the connection is failed with 1009. `nil` for no
    ///   limit.
    public init(role: Role, maximumMessageSize: Int?) {
        self.role = role
        self.messageLimit = maximumMessageSize ?? .max
    }

    /// Compresses and inflates from now on as agreed in the opening handshake.
    package mutating func startDeflate(
        _ parameters: PermessageDeflateParameters, policy: DeflatePolicy, share: DeflateShare
    ) {
        self.deflate = DeflateSession(parameters, policy: policy, role: self.role, share: share)
    }

    /// Decodes the next event from `buffer` at `position` on.
    ///
    /// - Parameter position: moved past what was used. Bytes from there on must come again, in front of what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    public mutating func nextEvent(_ buffer: inout MutableRawSpan, at position: inout Int) -> WebSocketEvent? {
        guard !self.isOver else { return nil }
        do throws(PeerViolation) {
            while true {
                if !self.inFrame {
                    guard let header = try self.nextHeader(buffer, at: position) else { return nil }
                    if header.opcode.isControl { return try self.control(header, &buffer, at: &position) }
                    try self.begin(header)
                    position += header.size
                }
                if self.messageIsCompressed {
                    let before = position
                    if let event = try self.inflateNext(&buffer, at: &position) { return event }
                    // An empty fragment gives nothing, and the next frame may be here already.
                    if position == before, self.inFrame { return nil }
                    if position >= buffer.byteCount { return nil }
                    continue
                }
                return try self.plainData(&buffer, at: &position)
            }
        } catch {
            self.isOver = true
            return .violation(error)
        }
    }

    private func nextHeader(_ buffer: borrowing MutableRawSpan, at position: Int) throws(PeerViolation) -> FrameHeader? {
        try FrameHeader.decode(
            buffer.bytes, at: position, from: self.role == .client ? .server : .client,
            allowsCompression: self.deflate != nil)
    }

    // MARK: Control frames

    private mutating func control(
        _ header: FrameHeader, _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        let start = position + header.size
        guard buffer.byteCount - start >= header.payloadLength else { return nil }
        var payload = [UInt8](buffer.bytes.extracting(start..<(start + header.payloadLength)))
        if let key = header.maskingKey {
            payload.withMutableRawSpan { _ = applyMask(&$0, key: key, phase: 0) }
        }
        position = start + header.payloadLength
        switch header.opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close:
            let (code, reason) = try ClosePayload.read(payload)
            self.isOver = true
            return .close(code, reason: reason)
        case .continuation, .text, .binary: return nil
        }
    }

    // MARK: Data frames

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
        self.unmask(&buffer, range)
        position += count
        self.frameLeft -= count
        self.messageLength += count
        let endsFrame = self.frameLeft == 0
        return .data(
            try self.chunk(.received(range), buffer.bytes.extracting(range), endsFrame: endsFrame, endsMessage: endsFrame && self.frameIsFinal))
    }

    private mutating func unmask(_ buffer: inout MutableRawSpan, _ range: Range<Int>) {
        guard self.role == .server, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        self.phase = applyMask(&payload, key: self.maskingKey, phase: self.phase)
    }

    private mutating func chunk(
        _ payload: DataChunk.Payload, _ bytes: RawSpan, endsFrame: Bool, endsMessage: Bool
    ) throws(PeerViolation) -> DataChunk {
        let kind = self.messageKind ?? .binary
        if kind == .text {
            guard self.validator.validate(bytes) == nil, !endsMessage || self.validator.isComplete else {
                throw PeerViolation(.invalidUTF8)
            }
        }
        let starts = self.messageStarts
        self.messageStarts = false
        if endsFrame { self.inFrame = false }
        if endsMessage {
            self.messageKind = nil
            self.messageIsCompressed = false
        }
        return DataChunk(kind: kind, payload: payload, startsMessage: starts, endsFrame: endsFrame, endsMessage: endsMessage)
    }

    // MARK: Compressed data

    /// Inflates what is here into the scratch.
    /// - Returns: `nil` when the input gave nothing (yet).
    private mutating func inflateNext(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let deflate = self.deflate else { throw PeerViolation(.reservedBits) }
        let count = self.tailGiven == nil ? min(self.frameLeft, buffer.byteCount - position) : 0
        if count == 0, self.frameLeft > 0 { return nil }
        let range = position..<(position + count)
        let phase = self.phase
        self.unmask(&buffer, range)
        var written = 0
        let used = try deflate.inflate(buffer.bytes.extracting(range), written: &written)
        if used < count { self.maskAgain(&buffer, range, from: used, phase: phase) }
        position += used
        self.frameLeft -= used
        var endsFrame = used == count && self.frameLeft == 0
        var endsMessage = false
        if endsFrame, self.frameIsFinal {
            endsMessage = try deflate.finishMessage(tailGiven: &self.tailGiven, written: &written)
            endsFrame = endsMessage
        }
        guard written <= self.messageLimit - self.messageLength else { throw PeerViolation(.messageTooLong) }
        self.messageLength += written
        guard written > 0 || endsFrame else { return nil }
        return .data(try self.inflatedChunk(written, deflate, endsFrame: endsFrame, endsMessage: endsMessage))
    }

    private mutating func inflatedChunk(
        _ count: Int, _ deflate: DeflateSession, endsFrame: Bool, endsMessage: Bool
    ) throws(PeerViolation) -> DataChunk {
        let result = deflate.share.output.withRawSpan { bytes -> Result<DataChunk, PeerViolation> in
            do throws(PeerViolation) {
                return .success(
                    try self.chunk(
                        .inflated(count), bytes.extracting(0..<count), endsFrame: endsFrame, endsMessage: endsMessage))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// What the inflater had no room for yet comes again, and must then look as it came.
    private mutating func maskAgain(_ buffer: inout MutableRawSpan, _ range: Range<Int>, from used: Int, phase: Int) {
        guard self.role == .server else { return }
        let next = (phase + used) & 3
        var rest = buffer._mutatingExtracting((range.lowerBound + used)..<range.upperBound)
        _ = applyMask(&rest, key: self.maskingKey, phase: next)
        self.phase = next
    }
}
