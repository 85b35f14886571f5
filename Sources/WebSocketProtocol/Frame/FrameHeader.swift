import ByteKernels
import WireText

/// A frame header (RFC 6455 §5.2).
public struct FrameHeader: Sendable, Hashable {
    /// Size of the longest header in bytes.
    public static let maximumSize = 14
    /// Longest payload of a control frame in bytes (§5.5).
    public static let controlPayloadLimit = 125

    public var isFinal: Bool
    /// RSV1: set on the first frame of a message compressed by permessage-deflate (RFC 7692 §6).
    public var isCompressed: Bool
    public var opcode: Opcode
    public var payloadLength: Int
    /// The four bytes of the key in little-endian order; `nil` for an unmasked frame.
    public var maskingKey: UInt32?

    public init(
        isFinal: Bool, isCompressed: Bool = false, opcode: Opcode, payloadLength: Int, maskingKey: UInt32? = nil
    ) {
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.opcode = opcode
        self.payloadLength = payloadLength
        self.maskingKey = maskingKey
    }

    /// Size of the encoded header in bytes, 2 to 14.
    public var size: Int {
        Self.size(payloadLength: self.payloadLength, isMasked: self.maskingKey != nil)
    }

    static func size(payloadLength: Int, isMasked: Bool) -> Int {
        (payloadLength < 126 ? 2 : payloadLength <= 0xFFFF ? 4 : 10) + (isMasked ? 4 : 0)
    }

    /// Writes the header to the front of `target`, which has room for `size` bytes, with the length in its shortest
    /// form.
    /// - Returns: the number of bytes written.
    func encode(into target: inout MutableRawSpan) -> Int {
        let first = (self.isFinal ? 0x80 : 0) | (self.isCompressed ? 0x40 : 0) | self.opcode.rawValue
        target.storeBytes(of: first, toByteOffset: 0, as: UInt8.self)
        let masked: UInt8 = self.maskingKey == nil ? 0 : 0x80
        var offset = 2
        if self.payloadLength < 126 {
            target.storeBytes(
                of: masked | UInt8(truncatingIfNeeded: self.payloadLength), toByteOffset: 1, as: UInt8.self)
        } else if self.payloadLength <= 0xFFFF {
            target.storeBytes(of: masked | 126, toByteOffset: 1, as: UInt8.self)
            let length = UInt16(truncatingIfNeeded: self.payloadLength).bigEndian
            target.storeBytes(of: length, toByteOffset: 2, as: UInt16.self)
            offset = 4
        } else {
            target.storeBytes(of: masked | 127, toByteOffset: 1, as: UInt8.self)
            target.storeBytes(of: UInt64(self.payloadLength).bigEndian, toByteOffset: 2, as: UInt64.self)
            offset = 10
        }
        guard let key = self.maskingKey else { return offset }
        target.storeBytes(of: key.littleEndian, toByteOffset: offset, as: UInt32.self)
        return offset + 4
    }

    /// Decodes the header at `offset`.
    ///
    /// - Returns: the header, or `nil` until all of its 2 to 14 bytes are available.
    /// - Throws: violations within the header, independent of preceding frames. An invalid bit or opcode is reported as
    ///   soon as its byte is available.
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
        // Only the first frame of a data message may have RSV1 set (RFC 7692 §6).
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
            header.maskingKey = UInt32(littleEndian: bytes.unaligned(offset + 2 + lengthSize, as: UInt32.self))
        }
        return header
    }

    /// Decodes the extended length, which must be in its shortest form with a highest bit of 0.
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

    /// An unmasked copy of the payload of the control frame at `offset`; `nil` until the frame is complete.
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

/// A frame's opcode (RFC 6455 §5.2).
public enum Opcode: UInt8, Sendable, Hashable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether this is Close, Ping or Pong: never fragmented, at most 125 bytes of payload (§5.5).
    public var isControl: Bool {
        self.rawValue & 0x8 != 0
    }
}

/// The reserved bits of a frame's first byte that negotiated extensions use (RFC 6455 §5.2).
package struct ReservedBits: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let none: ReservedBits = []
    /// RSV1 as used by permessage-deflate: only on the first frame of a data message (RFC 7692 §6).
    package static let compression = ReservedBits(rawValue: 0x40)
    /// RSV2 of an unknown extension, allowed on any frame.
    package static let second = ReservedBits(rawValue: 0x20)
    /// RSV3 of an unknown extension, allowed on any frame.
    package static let third = ReservedBits(rawValue: 0x10)
}

/// The role of a WebSocket endpoint: clients mask their frames, servers must not (RFC 6455 §5.1).
public enum Role: Sendable, Hashable {
    case client
    case server

    /// Size of an encoded frame in bytes.
    package func frameSize(payloadCount: Int) -> Int {
        FrameHeader.size(payloadLength: payloadCount, isMasked: self == .client) + payloadCount
    }

    /// The header of an unmasked frame with at most 65535 bytes of payload, which fits `LeadingBytes`; `nil` for
    /// others.
    package func shortHeader(_ opcode: Opcode, isFinal: Bool, isCompressed: Bool, payloadCount: Int) -> LeadingBytes? {
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

/// Masking keys (RFC 6455 §5.3), drawn in bulk from a cryptographic random generator. For one thread.
public final class MaskingKeys {
    private var keys: [UInt32] = []
    private let refill: () -> (first: UInt32, more: [UInt32])

    /// - Parameter refill: returns fresh random words: one for the next frame, and any number for later frames.
    public init(refill: @escaping () -> (first: UInt32, more: [UInt32])) {
        self.refill = refill
    }

    func next() -> UInt32 {
        if let key = self.keys.popLast() { return key }
        let (first, more) = self.refill()
        self.keys = more
        return first
    }
}
