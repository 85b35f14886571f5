/// Hash slots of Redis Cluster: which part of the keys a key belongs to.
package enum RedisKeySlot {
    package static let count = 16384

    /// CRC16 of the key, or of what is between its first `{` and the next `}` if that is not empty: so keys with the same
    /// tag share a slot. Source: Redis Cluster specification, "Key distribution model".
    package static func of(_ key: some Collection<UInt8>) -> Int {
        Int(self.crc16(self.hashed(Array(key)[...]))) % self.count
    }

    package static func of(_ key: String) -> Int { self.of(key.utf8) }

    private static func hashed(_ key: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let opening = key.firstIndex(of: UInt8(ascii: "{")) else { return key }
        let tag = key[(opening + 1)...].prefix { $0 != UInt8(ascii: "}") }
        return tag.isEmpty || tag.endIndex == key.endIndex ? key : tag
    }

    /// CRC-16/XMODEM: polynomial 0x1021, beginning with 0.
    static func crc16(_ bytes: some Collection<UInt8>) -> UInt16 {
        bytes.reduce(0) { crc, byte in crc << 8 ^ self.table[Int(UInt8(crc >> 8) ^ byte)] }
    }

    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
    }
}
