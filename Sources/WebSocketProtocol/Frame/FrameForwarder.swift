import ByteKernels

/// One direction between two WebSockets without extensions, whose data frames go over as they came: the same heads, the
/// same payload, in the buffer they were received in. Nothing is assembled, so a frame of any size passes.
///
/// A client's frames get a fresh masking key each, so that who sends them cannot choose what goes over the wire (RFC
/// 6455 §5.3, §10.3). Text is held to UTF-8 as by `WebSocketEngine`. Control frames are taken out: they are between one
/// peer and us.
/// - Source: RFC 6455 §5, §8.1.
package struct FrameForwarder {
    private(set) var scanner: FrameScanner
    let keys: MaskingKeys
    private var validator = UTF8Validator()
    /// Of the frame under way: the key it came with, the one it leaves with, and where in them its payload goes on.
    private var oldKey: UInt32 = 0
    private var newKey: UInt32 = 0
    private var phase = 0
    /// Frames of one run: looking at them takes a fraction of a millisecond.
    package static let frameLimit = 4096

    private var violation: PeerViolation?
    private var isOver = false

    /// - Parameters:
    ///   - sender: whose frames come in.
    ///   - maximumMessageSize: in bytes of payload over all fragments; beyond it 1009, told from the header alone.
    ///     `nil` for no limit.
    ///   - keys: for a client's frames.
    package init(from sender: Role, maximumMessageSize: Int?, keys: MaskingKeys) {
        self.scanner = FrameScanner(from: sender, maximumMessageSize: maximumMessageSize)
        self.keys = keys
    }

    /// Whether what was taken so far ends with a whole message, and nothing was wrong.
    var isBetweenMessages: Bool {
        self.scanner.isBetweenMessages && self.violation == nil
    }

    /// Takes all data frames, and parts of them, at `position` in `buffer`, up to the next control frame and at most
    /// `frameLimit`; or that control frame.
    ///
    /// For any cut of the bytes what is forwarded is the same but for the keys. Only of a frame that is bad itself it
    /// depends on the cut how much goes before the violation: none where the frame came whole.
    /// - Parameter position: moved past what was found. Bytes from there on (less than 139, or those of a violation)
    ///   must come again, in front of what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    package mutating func next(_ buffer: inout MutableRawSpan, at position: inout Int) -> ForwardingEvent? {
        if let violation = self.violation { return self.lastWord(violation) }
        var run = FrameRun(at: position)
        while position < buffer.byteCount, !self.mustStop(run, before: position, buffer),
            let found = self.scanner.scan(buffer.bytes, at: &position)
        {
            switch found {
            case .data(let piece):
                guard self.forward(piece, &buffer) else {
                    position = piece.range.lowerBound
                    return self.fail(PeerViolation(.invalidUTF8), behind: run)
                }
                run.append(piece)
            case .ping(let payload, _): return .ping(payload)
            case .pong(let payload, _): return .pong(payload)
            case .close(let code, let reason, _): return .close(code, reason: reason)
            case .violation(let violation): return self.fail(violation, behind: run)
            }
        }
        return run.range.isEmpty ? nil : .frames(run)
    }

    /// A control frame waits until what stands before it has been taken, and so does what is too much at once.
    private func mustStop(_ run: FrameRun, before position: Int, _ buffer: borrowing MutableRawSpan) -> Bool {
        guard !run.range.isEmpty, run.endsFrame, position < buffer.byteCount else { return false }
        return buffer.bytes[byte: position] & 0x08 != 0 || run.frameCount >= Self.frameLimit
    }

    private mutating func fail(_ violation: PeerViolation, behind run: FrameRun) -> ForwardingEvent? {
        self.violation = violation
        return run.range.isEmpty ? self.lastWord(violation) : .frames(run)
    }

    private mutating func lastWord(_ violation: PeerViolation) -> ForwardingEvent? {
        guard !self.isOver else { return nil }
        self.isOver = true
        return .violation(violation)
    }

    // MARK: Payload

    /// - Returns: whether it may go over.
    private mutating func forward(_ piece: FramePiece, _ buffer: inout MutableRawSpan) -> Bool {
        if piece.startsFrame, self.scanner.sender == .client { self.changeKey(piece, &buffer) }
        let payload = piece.payloadRange
        guard piece.kind == .text else {
            // Both keys at once: unmasked it is of no use to us.
            self.mask(&buffer, payload, self.oldKey ^ self.newKey)
            self.phase = (self.phase &+ payload.count) & 3
            return true
        }
        self.mask(&buffer, payload, self.oldKey)
        guard self.validator.validate(buffer.bytes.extracting(payload)) == nil else { return false }
        if piece.endsMessage, !self.validator.isComplete { return false }
        self.mask(&buffer, payload, self.newKey)
        self.phase = (self.phase &+ payload.count) & 3
        return true
    }

    private mutating func changeKey(_ piece: FramePiece, _ buffer: inout MutableRawSpan) {
        let place = piece.payloadRange.lowerBound - 4
        self.oldKey = UInt32(littleEndian: buffer.bytes.unaligned(place, as: UInt32.self))
        self.newKey = self.keys.next()
        self.phase = 0
        buffer.storeBytes(of: self.newKey.littleEndian, toByteOffset: place, as: UInt32.self)
    }

    private func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>, _ key: UInt32) {
        guard self.scanner.sender == .client, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        _ = applyMask(&payload, key: key, phase: self.phase)
    }

    /// Takes what nearly every read brings, faster than `next`, with which it may alternate: one message in one plain
    /// frame of at most 65535 bytes, which breaks no rule and is all that there is from `position` on.
    ///
    /// - Parameter position: moved to the end of `buffer`.
    /// - Returns: `nil`, with nothing changed, where it is anything else.
    package mutating func nextWholeMessage(_ buffer: inout MutableRawSpan, at position: inout Int) -> FrameRun? {
        guard self.isBetweenMessages,
            let frame = PlainFrame(
                buffer.bytes, at: position, from: self.scanner.sender, limit: self.scanner.messageLimit),
            frame.payload.upperBound == buffer.byteCount
        else { return nil }
        if self.scanner.sender == .client {
            guard self.changeKey(of: frame, &buffer) else { return nil }
        } else if frame.isText, !frame.isValidText(in: buffer.bytes) {
            return nil
        }
        let run = FrameRun(of: frame, from: position)
        position = frame.payload.upperBound
        return run
    }

    /// - Returns: whether the payload may go over; if not, the frame is left as it came.
    private mutating func changeKey(of frame: PlainFrame, _ buffer: inout MutableRawSpan) -> Bool {
        let old = frame.maskingKey(in: buffer.bytes)
        if frame.isText {
            frame.mask(&buffer, old)
            let isValid = frame.isValidText(in: buffer.bytes)
            guard isValid else {
                frame.mask(&buffer, old)
                return false
            }
        }
        let new = self.keys.next()
        // Both keys at once where the payload is of no use to us.
        frame.mask(&buffer, frame.isText ? new : old ^ new)
        buffer.storeBytes(of: new.littleEndian, toByteOffset: frame.payload.lowerBound - 4, as: UInt32.self)
        return true
    }
}

/// What a forwarder found in the bytes it was given.
package enum ForwardingEvent: Equatable, Sendable {
    /// Ready to be written to the other WebSocket, in place.
    case frames(FrameRun)
    /// To be answered here with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer sends no more. `nil`: its Close frame was empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer broke a rule; nothing is forwarded any more.
    case violation(PeerViolation)
}
