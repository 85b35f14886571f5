import ByteKernels

/// Forwards data frames from one WebSocket to another, both without extensions, in the receive buffer: headers and
/// payload stay the same, nothing is assembled, and frames of any size pass.
///
/// Each frame of a client gets a fresh masking key, so that its sender cannot choose the bytes on the wire (RFC 6455
/// §5.3, §10.3). Text must be UTF-8, as in `WebSocketEngine`. Control frames are not forwarded but returned as events.
/// - Source: RFC 6455 §5, §8.1.
package struct FrameForwarder {
    private(set) var scanner: FrameScanner
    let keys: MaskingKeys
    private var validator = UTF8Validator()
    /// Masking keys of the current frame, as received and as forwarded, and the phase of the next payload byte.
    private var oldKey: UInt32 = 0
    private var newKey: UInt32 = 0
    private var phase = 0
    /// Most frames of one run, so that processing it takes a fraction of a millisecond.
    package static let frameLimit = 4096

    private var violation: PeerViolation?
    private var isOver = false

    /// - Parameters:
    ///   - sender: the role of the endpoint whose frames are forwarded.
    ///   - maximumMessageSize: limit for the payload bytes of all fragments; a header beyond it is a violation (1009).
    ///     `nil` for no limit.
    ///   - keys: fresh masking keys for a client's frames.
    package init(from sender: Role, maximumMessageSize: Int?, keys: MaskingKeys) {
        self.scanner = FrameScanner(from: sender, maximumMessageSize: maximumMessageSize)
        self.keys = keys
    }

    /// Whether the forwarded bytes end with a complete message, and no violation occurred.
    var isBetweenMessages: Bool {
        self.scanner.isBetweenMessages && self.violation == nil
    }

    /// Returns the data frames from `position` on, complete or partial, up to the next control frame and at most
    /// `frameLimit`; or the control frame at `position`.
    ///
    /// Except for the keys, the forwarded bytes do not depend on how the input was split. Only for an invalid frame the
    /// split determines how much of it is forwarded before the violation: nothing if it arrived complete.
    /// - Parameter position: advanced past the result. The bytes from there on (less than 139, or those of a violation)
    ///   must be passed again, in front of further ones.
    /// - Returns: `nil` if more bytes are needed, and after a violation or a Close.
    package mutating func next(_ buffer: inout MutableRawSpan, at position: inout Int) -> ForwardingEvent? {
        if let violation = self.violation { return self.reportViolation(violation) }
        var run = FrameRun(at: position)
        while position < buffer.byteCount, !self.endsRun(run, before: position, buffer),
            let found = self.scanner.scan(buffer.bytes, at: &position)
        {
            switch found {
            case .data(let piece):
                guard self.rewrite(piece, &buffer) else {
                    position = piece.range.lowerBound
                    return self.fail(PeerViolation(.invalidUTF8), after: run)
                }
                run.append(piece)
            case .ping(let payload, _): return .ping(payload)
            case .pong(let payload, _): return .pong(payload)
            case .close(let code, let reason, _): return .close(code, reason: reason)
            case .violation(let violation): return self.fail(violation, after: run)
            }
        }
        return run.range.isEmpty ? nil : .frames(run)
    }

    /// Whether `run` must be returned before the frame at `position`: that is a control frame, or the run is full.
    private func endsRun(_ run: FrameRun, before position: Int, _ buffer: borrowing MutableRawSpan) -> Bool {
        guard !run.range.isEmpty, run.endsFrame, position < buffer.byteCount else { return false }
        return buffer.bytes[byte: position] & 0x08 != 0 || run.frameCount >= Self.frameLimit
    }

    private mutating func fail(_ violation: PeerViolation, after run: FrameRun) -> ForwardingEvent? {
        self.violation = violation
        return run.range.isEmpty ? self.reportViolation(violation) : .frames(run)
    }

    private mutating func reportViolation(_ violation: PeerViolation) -> ForwardingEvent? {
        guard !self.isOver else { return nil }
        self.isOver = true
        return .violation(violation)
    }

    // MARK: Payload

    /// Changes the masking key of `piece`, and validates it if it is text.
    /// - Returns: `false` for invalid UTF-8.
    private mutating func rewrite(_ piece: FramePiece, _ buffer: inout MutableRawSpan) -> Bool {
        if piece.startsFrame, self.scanner.sender == .client { self.changeKey(piece, &buffer) }
        let payload = piece.payloadRange
        guard piece.kind == .text else {
            // Applies both keys at once, as the unmasked payload is not needed.
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
        let keyOffset = piece.payloadRange.lowerBound - 4
        self.oldKey = UInt32(littleEndian: buffer.bytes.unaligned(keyOffset, as: UInt32.self))
        self.newKey = self.keys.next()
        self.phase = 0
        buffer.storeBytes(of: self.newKey.littleEndian, toByteOffset: keyOffset, as: UInt32.self)
    }

    private func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>, _ key: UInt32) {
        guard self.scanner.sender == .client, !range.isEmpty else { return }
        var payload = buffer._mutatingExtracting(range)
        _ = applyMask(&payload, key: key, phase: self.phase)
    }

    /// Fast path for most reads: one valid message in one unfragmented frame of at most 65535 bytes that ends at the
    /// end of `buffer`. May be mixed with calls of `next`.
    ///
    /// - Parameter position: advanced to the end of `buffer`.
    /// - Returns: `nil`, with nothing changed, for anything else.
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

    /// - Returns: `false` for invalid UTF-8; the frame is then unchanged.
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
        // Applies both keys at once if the unmasked payload was not needed.
        frame.mask(&buffer, frame.isText ? new : old ^ new)
        buffer.storeBytes(of: new.littleEndian, toByteOffset: frame.payload.lowerBound - 4, as: UInt32.self)
        return true
    }
}

package enum ForwardingEvent: Equatable, Sendable {
    /// Frames in the buffer to write to the other WebSocket.
    case frames(FrameRun)
    /// Must be answered with a Pong of the same payload (RFC 6455 §5.5.2).
    case ping([UInt8])
    case pong([UInt8])
    /// The peer's Close frame; the code is `nil` if it is empty.
    case close(CloseCode?, reason: [UInt8])
    /// The peer violated the protocol; forwarding has stopped.
    case violation(PeerViolation)
}
