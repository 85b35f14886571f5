import ByteKernels

/// Follows one direction of a WebSocket for a relay that forwards its frames as they are: holds them to the rules of
/// framing, and knows where one ends, so that a ping or a Close of the relay's own can be placed between two.
///
/// Looks at headers and control frames alone: text is not checked, and nothing is unmasked or inflated. Allocates
/// nothing for data frames. Use `WebSocketEngine` where the payload matters.
/// - Source: RFC 6455 §5.
package struct FrameScanner: Sendable {
    /// Who sends the frames: a client's must be masked.
    package let sender: Role
    /// The bits that both ends have agreed on.
    package let reservedBits: ReservedBits
    let messageLimit: Int

    /// Payload of the current data frame still to come.
    private var frameRemaining = 0
    private var inFrame = false
    private var isOver = false
    private var inMessage = false
    private var messageLength = 0
    private var frame = FramePiece(
        range: 0..<0, headerSize: 0, opcode: .binary, kind: .binary, isCompressed: false, isFinal: true, endsFrame: true
    )

    /// - Parameter maximumMessageSize: in bytes of payload on the wire, over all fragments: of a compressed message,
    ///   its compressed bytes. Beyond it 1009, told from the header alone. `nil` for no limit; negative counts as 0.
    package init(from sender: Role, reservedBits: ReservedBits = .none, maximumMessageSize: Int? = nil) {
        self.sender = sender
        self.reservedBits = reservedBits
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Whether all that was scanned so far ends with a whole frame, so that another may be put there.
    package var isAtFrameBoundary: Bool { !self.inFrame }

    /// Whether a message was begun and its last frame not yet.
    package var isInsideMessage: Bool { self.inMessage }

    /// Whether all that was scanned so far ends with a whole message, and more may come.
    var isBetweenMessages: Bool { !self.inFrame && !self.inMessage && !self.isOver }

    /// Finds the next piece in `bytes` at `position` on.
    ///
    /// - Parameter position: moved past what was found. Bytes from there on (less than 139) must come again, in front
    ///   of what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    package mutating func scan(_ bytes: RawSpan, at position: inout Int) -> ScannedFrame? {
        guard !self.isOver else { return nil }
        do throws(PeerViolation) {
            if self.inFrame { return self.payload(bytes, at: &position) }
            let header = try FrameHeader.decode(
                bytes, at: position, from: self.sender, reservedBits: self.reservedBits)
            guard let header else { return nil }
            if header.opcode.isControl { return try self.control(header, bytes, at: &position) }
            try self.begin(header)
            let start = position
            position += header.size
            return .data(self.piece(bytes, from: start, at: &position))
        } catch {
            self.isOver = true
            return .violation(error)
        }
    }

    private mutating func begin(_ header: FrameHeader) throws(PeerViolation) {
        let starts = header.opcode != .continuation
        guard starts || self.inMessage else { throw PeerViolation(.unexpectedContinuation) }
        guard !starts || !self.inMessage else { throw PeerViolation(.unfinishedMessage) }
        if starts {
            self.messageLength = 0
            self.frame.kind = header.opcode == .text ? .text : .binary
            self.frame.isCompressed = header.isCompressed
        }
        guard header.payloadLength <= self.messageLimit - self.messageLength else {
            throw PeerViolation(.messageTooLong)
        }
        self.messageLength += header.payloadLength
        self.frame.opcode = header.opcode
        self.frame.isFinal = header.isFinal
        self.frameRemaining = header.payloadLength
        self.inMessage = !header.isFinal
        self.inFrame = true
    }

    private mutating func payload(_ bytes: RawSpan, at position: inout Int) -> ScannedFrame? {
        guard position < bytes.byteCount else { return nil }
        return .data(self.piece(bytes, from: position, at: &position))
    }

    /// - Parameter start: where the frame's header stands; the position itself behind a frame's first piece.
    private mutating func piece(_ bytes: RawSpan, from start: Int, at position: inout Int) -> FramePiece {
        let count = min(self.frameRemaining, bytes.byteCount - position)
        var piece = self.frame
        piece.headerSize = position - start
        position += count
        self.frameRemaining -= count
        self.inFrame = self.frameRemaining > 0
        piece.range = start..<position
        piece.endsFrame = !self.inFrame
        return piece
    }

    private mutating func control(
        _ header: FrameHeader, _ bytes: RawSpan, at position: inout Int
    ) throws(PeerViolation) -> ScannedFrame? {
        guard let payload = header.controlPayload(bytes, at: position) else { return nil }
        let range = position..<(position + header.size + header.payloadLength)
        position = range.upperBound
        switch header.opcode {
        case .ping: return .ping(payload, range)
        case .pong: return .pong(payload, range)
        case .close:
            let (code, reason) = try ClosePayload.decode(payload)
            self.isOver = true
            return .close(code, reason: reason, range)
        case .continuation, .text, .binary: return nil
        }
    }
}

/// What a scanner found in the bytes it was given.
package enum ScannedFrame: Equatable, Sendable {
    case data(FramePiece)
    /// With the payload unmasked in a copy, and where the whole frame stands.
    case ping([UInt8], Range<Int>)
    case pong([UInt8], Range<Int>)
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8], Range<Int>)
    /// The peer broke a rule; nothing is scanned any more.
    case violation(PeerViolation)
}

/// A stretch of a data frame as it stands in the bytes given: to be forwarded as it is.
///
/// Pieces follow each other without gap, but for the control frames between them.
package struct FramePiece: Equatable, Sendable {
    /// Where it stands: header and payload, or either, or a part of the payload.
    package var range: Range<Int>
    /// How many bytes of the range are the frame's header: 2 to 14 on a frame's first piece, else 0.
    package var headerSize: Int
    /// The frame's own opcode: `.continuation` behind a message's first frame.
    package var opcode: Opcode
    package var kind: MessageKind
    /// RSV1 of the message's first frame.
    package var isCompressed: Bool
    /// Whether the frame is the last of its message.
    package var isFinal: Bool
    /// The last piece of its frame.
    package var endsFrame: Bool

    package init(
        range: Range<Int>, headerSize: Int, opcode: Opcode, kind: MessageKind, isCompressed: Bool, isFinal: Bool,
        endsFrame: Bool
    ) {
        self.range = range
        self.headerSize = headerSize
        self.opcode = opcode
        self.kind = kind
        self.isCompressed = isCompressed
        self.isFinal = isFinal
        self.endsFrame = endsFrame
    }

    /// The first piece of its frame.
    package var startsFrame: Bool { self.headerSize > 0 }
    /// The first piece of its message.
    package var startsMessage: Bool { self.startsFrame && self.opcode != .continuation }
    /// The last piece of its message.
    package var endsMessage: Bool { self.endsFrame && self.isFinal }
    /// Where payload stands, masked as it came.
    package var payloadRange: Range<Int> { (self.range.lowerBound + self.headerSize)..<self.range.upperBound }
}

/// Data frames that stand side by side in the bytes given, ready to be written to the other WebSocket: the rest of a
/// frame that had begun before, whole frames, and the beginning of one that goes on.
package struct FrameRun: Equatable, Sendable {
    /// Where they stand, headers included.
    package private(set) var range: Range<Int>
    /// Bytes of payload among them.
    package private(set) var payloadCount = 0
    /// Messages that end here.
    package private(set) var messageCount = 0
    /// Frames that end here.
    package private(set) var frameCount = 0
    /// Whether the last message is whole, so that a frame of another one may follow.
    package private(set) var endsMessage = true
    /// Whether the last frame is whole, so that a frame of another kind may follow.
    package private(set) var endsFrame = true
    /// What belongs to the frame that had begun before, at the front.
    private var restCount = 0
    private var restEndsMessage = false

    package init(at position: Int) {
        self.range = position..<position
    }

    /// One frame, which is a whole message.
    init(of frame: PlainFrame, from position: Int) {
        self.range = position..<frame.payload.upperBound
        self.payloadCount = frame.payload.count
        self.messageCount = 1
        self.frameCount = 1
    }

    package mutating func append(_ piece: FramePiece) {
        if !piece.startsFrame {
            self.restCount = piece.range.count
            self.restEndsMessage = piece.endsMessage
        }
        self.range = self.range.lowerBound..<piece.range.upperBound
        self.payloadCount += piece.payloadRange.count
        self.messageCount += piece.endsMessage ? 1 : 0
        self.frameCount += piece.endsFrame ? 1 : 0
        self.endsFrame = piece.endsFrame
        self.endsMessage = piece.endsMessage
    }

    /// The rest of the frame that had begun before, alone; `nil` where there is none.
    package var rest: FrameRun? {
        guard self.restCount > 0 else { return nil }
        var rest = self
        rest.range = self.range.lowerBound..<(self.range.lowerBound + self.restCount)
        rest.payloadCount = self.restCount
        rest.messageCount = self.restEndsMessage ? 1 : 0
        rest.endsMessage = self.restEndsMessage
        rest.endsFrame = self.endsFrame || self.restCount < self.range.count
        rest.frameCount = rest.endsFrame ? 1 : 0
        return rest
    }
}

/// The frame that nearly every message is: the first and the last of its message, no reserved bit set, with at most
/// 65535 bytes of payload that are all there. It breaks no rule that can be told without looking at the payload.
struct PlainFrame {
    let isText: Bool
    /// Where the payload stands; the masking key, if there is one, in the four bytes before.
    let payload: Range<Int>

    /// - Parameter limit: longest payload accepted, in bytes.
    /// - Returns: `nil` where anything else stands at `position`.
    @inline(__always)
    init?(_ bytes: RawSpan, at position: Int, from sender: Role, limit: Int) {
        let isMasked = sender == .client
        var start = position + (isMasked ? 6 : 2)
        guard start <= bytes.byteCount else { return nil }
        let head = UInt16(littleEndian: bytes.unaligned(position, as: UInt16.self))
        let first = UInt8(truncatingIfNeeded: head)
        let second = UInt8(truncatingIfNeeded: head >> 8)
        guard first == 0x81 || first == 0x82, (second & 0x80 != 0) == isMasked else { return nil }
        var length = Int(second & 0x7F)
        if length >= 126 {
            guard length == 126, start + 2 <= bytes.byteCount else { return nil }
            length = Int(UInt16(bigEndian: bytes.unaligned(position + 2, as: UInt16.self)))
            // Not written in the fewest bytes.
            guard length >= 126 else { return nil }
            start += 2
        }
        guard length <= bytes.byteCount - start, length <= limit else { return nil }
        self.isText = first == 0x81
        self.payload = start..<(start + length)
    }

    /// Of a client's frame.
    func maskingKey(in bytes: RawSpan) -> UInt32 {
        UInt32(littleEndian: bytes.unaligned(self.payload.lowerBound - 4, as: UInt32.self))
    }

    func mask(_ buffer: inout MutableRawSpan, _ key: UInt32) {
        var payload = buffer._mutatingExtracting(self.payload)
        _ = applyMask(&payload, key: key, phase: 0)
    }

    /// Whether the payload, unmasked, is UTF-8 as a whole.
    func isValidText(in bytes: RawSpan) -> Bool {
        var validator = UTF8Validator()
        return validator.validate(bytes.extracting(self.payload)) == nil && validator.isComplete
    }
}
