import ByteKernels

/// One WebSocket's frames, both ways, without IO: bytes are lent to `nextEvent`, which is asked until it says `nil`;
/// what is to be sent is written into room that the caller lends. Assembles nothing: payload is passed on as it
/// arrives.
///
/// - Source: RFC 6455 §5 to §8, RFC 7692.
public struct WebSocketEngine: ~Copyable {
    enum State: Equatable {
        case open
        /// A rule was broken behind bytes that were still good: those went out first.
        case failing(PeerViolation.Rule)
        case over
    }

    // In the order that wastes no room: every connection has one of these.

    /// Longest message in bytes after inflation; `Int.max` for no limit.
    private(set) var messageLimit: Int
    /// Payload of the current data frame still to come.
    var frameRemaining = 0
    /// Payload of the message so far.
    var messageLength = 0
    /// Made when permessage-deflate was agreed.
    var deflate: DeflateSession?
    private var maskingKey: UInt32 = 0
    /// Payload of the current frame that was unmasked and not used yet, as the inflater had no room.
    var unmaskedCount: UInt32 = 0
    /// Where in the key the payload goes on that is still masked, 0 to 3.
    var maskingPhase: UInt8 = 0
    /// Ours; the peer has the other.
    public let role: Role
    private(set) var state = State.open
    var inFrame = false
    var frameIsFinal = false
    /// The kind of the unfinished message; `nil` between messages.
    private(set) var messageKind: MessageKind?
    private var messageStarts = false
    private var validator = UTF8Validator()
    private var messageIsCompressed = false
    /// Of the four bytes that end a compressed message for the inflater (RFC 7692 §7.2.2), those given already.
    var tailConsumed: UInt8 = 0
    /// Whether the byte at the position was used already, and stays only so that we are asked again.
    var retainsLastByte = false
    /// Whether the message that is being sent is compressed.
    var sendsCompressed = false

    /// - Parameter maximumMessageSize: in bytes, after inflation, over all fragments; beyond it the connection is
    ///   failed with 1009. `nil` for no limit; negative counts as 0.
    public init(role: Role, maximumMessageSize: Int?) {
        self.role = role
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Changes the limit for what comes from now on, the rest of a message that has begun included.
    package mutating func setMaximumMessageSize(_ maximumMessageSize: Int?) {
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Compresses and inflates from now on as agreed in the opening handshake.
    package mutating func startDeflate(
        _ parameters: PermessageDeflateParameters, policy: DeflatePolicy, context: DeflateContext
    ) {
        self.deflate = DeflateSession(parameters, policy: policy, role: self.role, share: context)
    }

    /// Whether what was received so far ends with a whole message.
    package var isBetweenMessages: Bool {
        self.state == .open && !self.inFrame && self.messageKind == nil
    }

    /// Decodes the next event from `buffer` at `position` on.
    ///
    /// The events do not depend on how the bytes were cut, but for the cuts of data within a frame: good bytes in front
    /// of a bad one are passed on before the violation. Where `position` reaches the end of `buffer`, nothing is held
    /// that could be had without further bytes.
    /// - Parameter position: moved past what was used. Bytes from there on must come again, as they are then, in front
    ///   of
    ///   what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    public mutating func nextEvent(_ buffer: inout MutableRawSpan, at position: inout Int) -> WebSocketEvent? {
        guard self.state == .open else { return self.lastEvent() }
        let start = position
        do throws(PeerViolation) {
            let event = try self.decode(&buffer, at: &position)
            // The violation is still to be asked for, so the bytes must come again.
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

    private mutating func plainData(
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
                .received(range), buffer.bytes.extracting(range), endsFrame: self.frameRemaining == 0, fault: nil)
        )
    }

    /// Masks or unmasks the next bytes of the frame in place.
    mutating func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>) {
        guard self.role == .server, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        self.maskingPhase = UInt8(
            truncatingIfNeeded: applyMask(&payload, key: self.maskingKey, phase: Int(self.maskingPhase)))
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
        self.state = .failing(rule)
        var good = chunk
        good.endsFrame = false
        good.endsMessage = false
        switch chunk.payload {
        case .received(let range): good.payload = .received(range.lowerBound..<(range.lowerBound + count))
        case .inflated: good.payload = .inflated(count)
        }
        return good
    }

    /// Takes what nearly every message is, faster than `nextEvent`, with which it may alternate: one plain frame of at
    /// most 65535 bytes that breaks no rule and has come whole.
    ///
    /// - Parameter position: moved past the message.
    /// - Returns: `nil`, with nothing changed, where anything else stands at `position`.
    package mutating func nextWholeMessage(_ buffer: inout MutableRawSpan, at position: inout Int) -> WholeMessage? {
        guard !self.inFrame, self.messageKind == nil, self.deflate == nil, self.state == .open else { return nil }
        let sender: Role = self.role == .server ? .client : .server
        guard let frame = PlainFrame(buffer.bytes, at: position, from: sender, limit: self.messageLimit) else {
            return nil
        }
        let key = sender == .client ? frame.maskingKey(in: buffer.bytes) : 0
        if sender == .client { frame.mask(&buffer, key) }
        if frame.isText, !frame.isValidText(in: buffer.bytes) {
            // Where it is bad is told by who reads it again, as it came.
            if sender == .client { frame.mask(&buffer, key) }
            return nil
        }
        position = frame.payload.upperBound
        return WholeMessage(kind: frame.isText ? .text : .binary, payload: frame.payload)
    }

    /// Inflates what is here of the current frame into the scratch. What there is no room for comes again, unmasked:
    /// each byte is looked at once, however often what inflates to much is offered.
    /// - Returns: `nil` when the input gave nothing (yet).
    mutating func inflateNext(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let deflate = self.deflate else { throw PeerViolation(.reservedBits) }
        let start = position + (self.retainsLastByte ? 1 : 0)
        let count = min(self.frameRemaining, buffer.byteCount - start, Self.mostInflatedAtOnce)
        guard count > 0 || count == 0 && (self.frameRemaining == 0 || self.retainsLastByte) else { return nil }
        let range = start..<(start + count)
        self.mask(&buffer, (start + min(Int(self.unmaskedCount), count))..<range.upperBound)
        var used = 0
        var written = 0
        var stop = deflate.inflate(buffer.bytes.extracting(range), used: &used, written: &written)
        self.unmaskedCount = UInt32(truncatingIfNeeded: count - used)
        self.frameRemaining -= used
        if stop == .needsInput, self.frameRemaining == 0, self.frameIsFinal {
            var given = Int(self.tailConsumed)
            stop = deflate.finishMessage(tailGiven: &given, written: &written)
            self.tailConsumed = UInt8(truncatingIfNeeded: given)
        }
        self.move(&position, to: start + used, of: buffer.byteCount, stop)
        return try self.inflated(written, deflate.context, stop)
    }

    /// Bytes of input, so that they can be counted in four bytes; a buffer never holds so many.
    private static let mostInflatedAtOnce = 1 << 30

    /// Where more is to come out, but nothing is left over to be offered again, one byte stays behind for it.
    private mutating func move(_ position: inout Int, to end: Int, of count: Int, _ stop: InflateStatus) {
        self.retainsLastByte = stop == .outputFull && end == count && end > position
        position = self.retainsLastByte ? end - 1 : end
    }

    private mutating func inflated(
        _ written: Int, _ share: DeflateContext, _ stop: InflateStatus
    ) throws(PeerViolation) -> WebSocketEvent? {
        let room = self.messageLimit - self.messageLength
        let count = min(written, room)
        let fault: PeerViolation.Rule? =
            written > room ? .messageTooLong : stop == .corrupt ? .invalidCompressedData : nil
        let endsFrame = stop == .needsInput && self.frameRemaining == 0 && fault == nil
        self.messageLength += count
        guard count > 0 || endsFrame || fault != nil else { return nil }
        let result = share.output.withRawSpan { bytes -> Result<DataChunk, PeerViolation> in
            do throws(PeerViolation) {
                let text = bytes.extracting(0..<count)
                return .success(try self.chunk(.inflated(count), text, endsFrame: endsFrame, fault: fault))
            } catch {
                return .failure(error)
            }
        }
        return .data(try result.get())
    }

    /// Bytes that a frame with this payload takes on the wire.
    public func frameSize(payloadCount: Int) -> Int {
        self.role.frameSize(payloadCount: payloadCount)
    }

    /// Writes a frame to the front of `target`, which has room for `frameSize`: the header, and the payload masked on
    /// its way if we are a client.
    /// - Returns: the bytes written.
    @discardableResult
    public func encodeFrame(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool = false, _ payload: RawSpan, keys: MaskingKeys,
        into target: inout MutableRawSpan
    ) -> Int {
        self.role.encodeFrame(
            opcode, isFinal: isFinal, isCompressed: isCompressed, payload, keys: keys, into: &target)
    }

    /// Compresses the payload of one data frame where that was agreed and pays.
    ///
    /// - Returns: where the compressed payload is, to be sent in the given one's place with RSV1 on a message's first
    ///   frame; `nil` to send it as it is.
    package mutating func compress(startsMessage: Bool, endsMessage: Bool, _ payload: RawSpan) -> DeflateContext? {
        guard let deflate = self.deflate else { return nil }
        if startsMessage {
            self.sendsCompressed = deflate.shouldCompress(count: payload.byteCount, isWhole: endsMessage)
        }
        guard self.sendsCompressed else { return nil }
        guard deflate.deflate(payload, endsMessage: endsMessage) else {
            // Only the first frame can find no memory; those behind it then go as they are, too.
            self.sendsCompressed = false
            return nil
        }
        return deflate.context
    }
}

/// What the engine found in the bytes it was given.
public enum WebSocketEvent: Equatable, Sendable {
    case data(DataChunk)
    /// To be answered with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer broke a rule; nothing is decoded any more.
    case violation(PeerViolation)
}

/// A data message that came in one frame and stands whole in the buffer that was lent, unmasked in place; if text, it
/// is UTF-8.
package struct WholeMessage: Equatable, Sendable {
    package let kind: MessageKind
    package let payload: Range<Int>

    init(kind: MessageKind, payload: Range<Int>) {
        self.kind = kind
        self.payload = payload
    }
}

/// The two kinds of WebSocket message (RFC 6455 §5.6).
@frozen
public enum MessageKind: Sendable, Hashable {
    case text
    case binary

    /// The opcode of such a message's first frame.
    package var opcode: Opcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }
}

/// A piece of a data message's payload, as much as has arrived: unmasked, inflated, and if text checked to be UTF-8
/// so far.
public struct DataChunk: Equatable, Sendable {
    public enum Payload: Equatable, Sendable {
        /// In the buffer that was lent, in place.
        case received(Range<Int>)
        /// So many bytes in the scratch that was given with the agreement on compression, until the next event.
        case inflated(Int)
    }

    public var kind: MessageKind
    public var payload: Payload
    /// The first piece of its message.
    public var startsMessage: Bool
    /// The last piece of its frame.
    public var endsFrame: Bool
    /// The last piece of its message.
    public var endsMessage: Bool

    /// Bytes of payload.
    public var count: Int {
        switch self.payload {
        case .received(let range): range.count
        case .inflated(let count): count
        }
    }
}

/// Why inflating stopped.
enum InflateStatus: Equatable {
    /// Everything that the input gives was written.
    case needsInput
    /// There may be more to come, even without further input.
    case outputFull
    /// What was written until then is good.
    case corrupt
}

/// Pings that wait for their Pongs, in the order in which they went out.
///
/// A Pong answers the ping whose payload it repeats (of several alike, the earliest), and every one before it: a peer
/// may answer only the most recent (RFC 6455 §5.5.3). A Pong that repeats nothing waiting is unsolicited and means
/// nothing.
public struct PendingPings: Sendable {
    /// Pings that may wait at once.
    public static let limit = 1024

    private struct Entry: Sendable {
        let number: UInt64
        let payload: [UInt8]
    }

    private var waiting: [Entry] = []

    public init() {}

    /// - Returns: whether there was room: a peer that answers none is not asked without end.
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
