import ByteKernels
import WireText

/// Tracks one direction of a WebSocket for a relay that forwards frames unchanged: enforces the framing rules, and
/// locates frame boundaries, where the relay may insert its own Ping or Close.
///
/// Parses headers and control frames only: does not validate text, unmask or inflate. Does not allocate for data
/// frames. Use `WebSocketEngine` to process payloads.
/// - Source: RFC 6455 §5.
package struct FrameScanner: Sendable {
    /// The sender of the frames: a client's must be masked.
    package let sender: Role
    /// The bits that the negotiated extensions use.
    package let reservedBits: ReservedBits
    let messageLimit: Int

    /// Payload bytes of the current data frame not received yet.
    private var frameRemaining = 0
    private var inFrame = false
    private var isOver = false
    private var inMessage = false
    private var messageLength = 0
    private var frame = FramePiece(
        range: 0..<0, headerSize: 0, opcode: .binary, kind: .binary, isCompressed: false, isFinal: true, endsFrame: true
    )

    /// - Parameter maximumMessageSize: limit for the payload bytes of all fragments on the wire, compressed ones for a
    ///   compressed message; a header beyond it is a violation (1009). `nil` for no limit; negative counts as 0.
    package init(from sender: Role, reservedBits: ReservedBits = .none, maximumMessageSize: Int? = nil) {
        self.sender = sender
        self.reservedBits = reservedBits
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Whether the scanned bytes end at a frame boundary, where another frame may be inserted.
    package var isAtFrameBoundary: Bool { !self.inFrame }

    /// Whether a message has begun and its last frame has not.
    package var isInsideMessage: Bool { self.inMessage }

    /// Whether the scanned bytes end with a complete message, and neither a violation nor a Close occurred.
    var isBetweenMessages: Bool { !self.inFrame && !self.inMessage && !self.isOver }

    /// Scans the next piece of `bytes` from `position` on.
    ///
    /// - Parameter position: advanced past the piece. The bytes from there on (less than 139) must be passed again, in
    ///   front of further ones.
    /// - Returns: `nil` if more bytes are needed, and after a violation or a Close.
    package mutating func scan(_ bytes: RawSpan, at position: inout Int) -> ScannedFrame? {
        guard !self.isOver else { return nil }
        do throws(PeerViolation) {
            if self.inFrame { return self.payload(bytes, at: &position) }
            let header = try FrameHeader.decode(bytes, at: position, from: self.sender, reservedBits: self.reservedBits)
            guard let header else { return nil }
            if header.opcode.isControl { return try self.controlFrame(header, bytes, at: &position) }
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

    /// - Parameter start: offset of the frame's header; equal to `position` after a frame's first piece.
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

    private mutating func controlFrame(
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

package enum ScannedFrame: Equatable, Sendable {
    case data(FramePiece)
    /// An unmasked copy of the payload, and the range of the frame.
    case ping([UInt8], Range<Int>)
    case pong([UInt8], Range<Int>)
    /// The peer's Close frame; the code is `nil` if it is empty.
    case close(CloseCode?, reason: [UInt8], Range<Int>)
    /// The peer violated the protocol; scanning has stopped.
    case violation(PeerViolation)
}

/// A part of a data frame in the scanned bytes, to be forwarded unchanged.
///
/// Pieces are contiguous except for control frames between them.
package struct FramePiece: Equatable, Sendable {
    /// The range in the scanned bytes: the header, payload bytes, or both.
    package var range: Range<Int>
    /// Size of the header at the start of the range: 2 to 14 in a frame's first piece, else 0.
    package var headerSize: Int
    /// The opcode of the frame: `.continuation` after a message's first frame.
    package var opcode: Opcode
    package var kind: MessageKind
    /// RSV1 of the message's first frame.
    package var isCompressed: Bool
    /// Whether the frame is the last of its message.
    package var isFinal: Bool
    /// Whether the piece is the last of its frame.
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

    package var startsFrame: Bool { self.headerSize > 0 }
    package var startsMessage: Bool { self.startsFrame && self.opcode != .continuation }
    package var endsMessage: Bool { self.endsFrame && self.isFinal }
    /// The range of the payload bytes, masked as received.
    package var payloadRange: Range<Int> { (self.range.lowerBound + self.headerSize)..<self.range.upperBound }
}

/// A contiguous range of data frames, ready to be written to the other WebSocket: the rest of a frame that began
/// earlier, complete frames, and the beginning of an incomplete one.
package struct FrameRun: Equatable, Sendable {
    /// The range in the buffer, headers included.
    package private(set) var range: Range<Int>
    /// Number of payload bytes.
    package private(set) var payloadCount = 0
    /// Number of messages that end in the run.
    package private(set) var messageCount = 0
    /// Number of frames that end in the run.
    package private(set) var frameCount = 0
    /// Whether the run ends at a message boundary, where another message may follow.
    package private(set) var endsMessage = true
    /// Whether the run ends at a frame boundary, where a control frame may follow.
    package private(set) var endsFrame = true
    /// Number of bytes at the front that belong to a frame that began earlier.
    private var restCount = 0
    private var restEndsMessage = false

    package init(at position: Int) {
        self.range = position..<position
    }

    /// A single frame that is a complete message.
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

    /// The part of the run that completes a frame that began earlier, if any.
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

/// The fast path for most messages: a complete unfragmented frame without reserved bits, with at most 65535 bytes of
/// payload. Its header is valid.
struct PlainFrame {
    let isText: Bool
    /// The range of the payload; the masking key, if any, is in the four bytes before it.
    let payload: Range<Int>

    /// - Parameter limit: longest accepted payload in bytes.
    /// - Returns: `nil` if the bytes at `position` are anything else.
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
            // Not the shortest form.
            guard length >= 126 else { return nil }
            start += 2
        }
        guard length <= bytes.byteCount - start, length <= limit else { return nil }
        self.isText = first == 0x81
        self.payload = start..<(start + length)
    }

    /// The key of a client's frame.
    func maskingKey(in bytes: RawSpan) -> UInt32 {
        UInt32(littleEndian: bytes.unaligned(self.payload.lowerBound - 4, as: UInt32.self))
    }

    func mask(_ buffer: inout MutableRawSpan, _ key: UInt32) {
        var payload = buffer._mutatingExtracting(self.payload)
        _ = applyMask(&payload, key: key, phase: 0)
    }

    /// Whether the unmasked payload is valid UTF-8.
    func isValidText(in bytes: RawSpan) -> Bool {
        var validator = UTF8Validator()
        return validator.validate(bytes.extracting(self.payload)) == nil && validator.isComplete
    }
}
