import ByteKernels

/// Frames as one end sends them; no state but the masking keys.
extension Role {
    /// Bytes that a frame with this payload takes on the wire.
    package func frameSize(payloadCount: Int) -> Int {
        FrameHeader.size(payloadLength: payloadCount, isMasked: self == .client) + payloadCount
    }

    /// The head of a frame where it fits eight bytes: unmasked, so of a server, with at most 65535 bytes of payload. Else
    /// `nil`.
    package func shortHead(_ opcode: Opcode, isFinal: Bool, isCompressed: Bool, payloadCount: Int) -> LeadingBytes? {
        guard self == .server, payloadCount <= 0xFFFF else { return nil }
        let first = UInt64((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let length = UInt64(truncatingIfNeeded: payloadCount)
        guard payloadCount >= 126 else { return LeadingBytes(first | length << 8, count: 2) }
        return LeadingBytes(first | 126 << 8 | (length >> 8) << 16 | (length & 0xFF) << 24, count: 4)
    }

    /// As `WebSocketEngine.encodeFrame`, without an engine.
    package func encodeFrame(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool, _ payload: RawSpan, keys: MaskingKeys,
        into target: inout MutableRawSpan
    ) -> Int {
        var header = FrameHeader(
            isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, payloadLength: payload.byteCount)
        if self == .client { header.maskingKey = keys.next() }
        let start = header.encode(into: &target)
        if let key = header.maskingKey {
            _ = copyMasked(payload, into: &target, at: start, key: key, phase: 0)
        } else {
            target.copy(payload, at: start)
        }
        return start + payload.byteCount
    }
}
