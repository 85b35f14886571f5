/// What stands before a frame's payload (RFC 6455 §5.2).
public struct FrameHeader: Sendable, Hashable {
    /// Bytes of the longest header.
    public static let maximumSize = 14
    /// Longest payload of a control frame (§5.5).
    public static let controlPayloadLimit = 125

    public var isFinal: Bool
    /// RSV1: under permessage-deflate, on the first frame of a compressed message (RFC 7692 §6).
    public var isCompressed: Bool
    public var opcode: Opcode
    public var payloadLength: Int
    /// The four key bytes, the first on the wire lowest; `nil` for an unmasked frame.
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

    /// Bytes that the header takes on the wire: 2 to 14.
    public var size: Int {
        Self.size(payloadLength: self.payloadLength, isMasked: self.maskingKey != nil)
    }

    static func size(payloadLength: Int, isMasked: Bool) -> Int {
        (payloadLength < 126 ? 2 : payloadLength <= 0xFFFF ? 4 : 10) + (isMasked ? 4 : 0)
    }

    /// Writes the header to the front of `target`, which has room for `size` bytes, with the shortest length that fits.
    /// - Returns: the bytes written.
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
}
