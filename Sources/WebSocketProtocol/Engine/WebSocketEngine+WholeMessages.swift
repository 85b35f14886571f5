import ByteKernels

extension WebSocketEngine {
    /// Takes what nearly every message is, faster than `nextEvent`, with which it may alternate: one plain frame of at
    /// most 65535 bytes that breaks no rule and has come whole.
    ///
    /// - Parameter position: moved past the message.
    /// - Returns: `nil`, with nothing changed, where anything else stands at `position`.
    package mutating func nextWholeMessage(_ buffer: inout MutableRawSpan, at position: inout Int) -> WholeMessage? {
        guard !self.inFrame, self.messageKind == nil, self.deflate == nil, self.course == .open else { return nil }
        let isMasked = self.role == .server
        guard buffer.byteCount - position >= (isMasked ? 6 : 2) else { return nil }
        let head = UInt16(littleEndian: buffer.bytes.unaligned(position, as: UInt16.self))
        let first = UInt8(truncatingIfNeeded: head)
        let second = UInt8(truncatingIfNeeded: head >> 8)
        // The last frame of its message and the first, with no reserved bit; masked as it must be.
        guard first == 0x81 || first == 0x82, (second & 0x80 != 0) == isMasked else { return nil }
        var start = position + (isMasked ? 6 : 2)
        var length = Int(second & 0x7F)
        if length >= 126 {
            guard length == 126, start + 2 <= buffer.byteCount else { return nil }
            length = Int(UInt16(bigEndian: buffer.bytes.unaligned(position + 2, as: UInt16.self)))
            guard length >= 126 else { return nil }
            start += 2
        }
        guard length <= buffer.byteCount - start, length <= self.messageLimit else { return nil }
        let payload = start..<(start + length)
        guard self.unmask(&buffer, payload, isMasked: isMasked, isText: first == 0x81) else { return nil }
        position = payload.upperBound
        return WholeMessage(kind: first == 0x81 ? .text : .binary, payload: payload)
    }

    /// - Returns: whether the payload may be taken; if not, it is masked as it came.
    private func unmask(_ buffer: inout MutableRawSpan, _ payload: Range<Int>, isMasked: Bool, isText: Bool) -> Bool {
        let key = isMasked ? UInt32(littleEndian: buffer.bytes.unaligned(payload.lowerBound - 4, as: UInt32.self)) : 0
        if isMasked { Self.mask(&buffer, payload, key) }
        guard isText else { return true }
        var validator = UTF8Validator()
        if validator.validate(buffer.bytes.extracting(payload)) == nil, validator.isComplete { return true }
        // Where it is bad is told by who reads it again.
        if isMasked { Self.mask(&buffer, payload, key) }
        return false
    }

    private static func mask(_ buffer: inout MutableRawSpan, _ range: Range<Int>, _ key: UInt32) {
        var payload = buffer._mutatingExtracting(range)
        _ = applyMask(&payload, key: key, phase: 0)
    }
}
