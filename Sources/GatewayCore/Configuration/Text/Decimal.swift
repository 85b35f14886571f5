/// Whole numbers in decimal digits and nothing else: no sign, no spaces, no separators.
enum Decimal {
    /// - Returns: `nil` for anything but 1 to 18 digits.
    static func integer(_ bytes: some Collection<UInt8>) -> Int? {
        guard (1...18).contains(bytes.count) else { return nil }
        var number = 0
        for byte in bytes {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + Int(byte - 0x30)
        }
        return number
    }

    /// - Returns: `nil` unless it is 0 to 65535 in 1 to 5 digits.
    static func port(_ bytes: some Collection<UInt8>) -> UInt16? {
        guard bytes.count <= 5, let number = Self.integer(bytes) else { return nil }
        return UInt16(exactly: number)
    }
}
