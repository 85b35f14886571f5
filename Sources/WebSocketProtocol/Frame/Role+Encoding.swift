import ByteKernels

/// Frames as one end sends them; no state but the masking keys.
extension Role {
    /// Bytes that a frame with this payload takes on the wire.
    package func frameSize(payloadCount: Int) -> Int {
        FrameHeader.size(payloadLength: payloadCount, isMasked: self == .client) + payloadCount
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
