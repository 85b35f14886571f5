import WebSocketProtocol

/// A frame encoded bit by bit (RFC 6455 §5.2), which can also break the rules.
struct WireFrame {
    /// FIN, RSV1 to RSV3 and the opcode.
    var first: UInt8
    var payload: [UInt8]
    /// The masking key; `nil` for no masking.
    var key: [UInt8]?
    /// Bytes of the extended length, 0, 2 or 8; `nil` for the fewest.
    var lengthSize: Int?
    /// A false length for the header.
    var claimedLength: UInt64?

    static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    init(_ first: UInt8, _ payload: [UInt8] = [], from sender: Role, lengthSize: Int? = nil, claimed: UInt64? = nil) {
        self.first = first
        self.payload = payload
        self.key = sender == .client ? Self.key : nil
        self.lengthSize = lengthSize
        self.claimedLength = claimed
    }

    init(_ first: UInt8, _ text: String, from sender: Role) {
        self.init(first, Array(text.utf8), from: sender)
    }

    var bytes: [UInt8] {
        let length = self.claimedLength ?? UInt64(self.payload.count)
        let size = self.lengthSize ?? (length < 126 ? 0 : length < 65_536 ? 2 : 8)
        let short = size == 0 ? UInt8(truncatingIfNeeded: length & 0x7F) : size == 2 ? 126 : 127
        var bytes = [self.first, short | (self.key == nil ? 0 : 0x80)]
        for place in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: length >> (8 * UInt64(place)))) }
        guard let key = self.key else { return bytes + self.payload }
        bytes += key
        for (index, byte) in self.payload.enumerated() { bytes.append(byte ^ key[index % 4]) }
        return bytes
    }
}

extension Role {
    var other: Role { self == .client ? .server : .client }
}

extension Role {
    static let both: [Role] = [.client, .server]
}
