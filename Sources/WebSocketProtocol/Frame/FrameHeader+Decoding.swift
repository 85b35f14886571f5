import ByteKernels

extension FrameHeader {
    /// Reads the header at `offset`.
    ///
    /// - Returns: the header, or `nil` until all of its 2 to 14 bytes are there.
    /// - Throws: what is wrong with the header by itself, whatever came before it. A bit or opcode that is wrong is
    ///   told as soon as its byte is there.
    /// - Source: RFC 6455 §5.2.
    static func decode(
        _ bytes: RawSpan, at offset: Int, from sender: Role, reservedBits: ReservedBits
    ) throws(PeerViolation) -> FrameHeader? {
        let available = bytes.byteCount - offset
        guard available >= 1 else { return nil }
        let first = bytes[byte: offset]
        guard first & 0x70 & ~reservedBits.rawValue == 0 else { throw PeerViolation(.reservedBits) }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw PeerViolation(.reservedOpcode) }
        let isCompressed = first & 0x40 != 0
        // RSV1 belongs to the first frame of a data message alone (RFC 7692 §6).
        if isCompressed, opcode.isControl || opcode == .continuation { throw PeerViolation(.reservedBits) }
        if opcode.isControl, first & 0x80 == 0 { throw PeerViolation(.fragmentedControlFrame) }
        guard available >= 2 else { return nil }
        let second = bytes[byte: offset + 1]
        let isMasked = second & 0x80 != 0
        guard isMasked == (sender == .client) else {
            throw PeerViolation(isMasked ? .maskedServerFrame : .unmaskedClientFrame)
        }
        let short = Int(second & 0x7F)
        if opcode.isControl, short > Self.controlPayloadLimit { throw PeerViolation(.longControlFrame) }
        let lengthSize = short < 126 ? 0 : short == 126 ? 2 : 8
        guard available >= 2 + lengthSize + (isMasked ? 4 : 0) else { return nil }
        let length = try Self.length(bytes, at: offset + 2, short: short)
        var header = FrameHeader(
            isFinal: first & 0x80 != 0, isCompressed: isCompressed, opcode: opcode, payloadLength: length)
        if isMasked {
            header.maskingKey = UInt32(
                littleEndian: bytes.unaligned(offset + 2 + lengthSize, as: UInt32.self))
        }
        return header
    }

    /// The length must be written in the fewest bytes, and its highest bit must be 0.
    private static func length(_ bytes: RawSpan, at offset: Int, short: Int) throws(PeerViolation) -> Int {
        switch short {
        case 126:
            let length = UInt16(bigEndian: bytes.unaligned(offset, as: UInt16.self))
            guard length >= 126 else { throw PeerViolation(.lengthNotMinimal) }
            return Int(length)
        case 127:
            let length = UInt64(bigEndian: bytes.unaligned(offset, as: UInt64.self))
            guard length <= UInt64(Int64.max) else { throw PeerViolation(.lengthTooLarge) }
            guard length > 0xFFFF else { throw PeerViolation(.lengthNotMinimal) }
            return Int(length)
        default:
            return short
        }
    }

    /// The payload of the control frame whose header stands at `offset`, unmasked in a copy; `nil` until all is there.
    func controlPayload(_ bytes: RawSpan, at offset: Int) -> [UInt8]? {
        let start = offset + self.size
        guard bytes.byteCount - start >= self.payloadLength else { return nil }
        var payload = [UInt8](bytes.extracting(start..<(start + self.payloadLength)))
        if let key = self.maskingKey {
            payload.withMutableRawSpan { _ = applyMask(&$0, key: key, phase: 0) }
        }
        return payload
    }
}
