/// Reads addresses strictly: four decimals without leading zeros, or RFC 4291 §2.2's forms without a zone.
enum AddressText {
    /// - Returns: `nil` for anything else.
    static func address(_ text: Substring.UTF8View) -> IPAddress? {
        if text.contains(UInt8(ascii: ":")) { return self.v6(Array(text)) }
        return self.v4(Array(text)).map { .v4($0) }
    }

    static func v4(_ bytes: [UInt8]) -> UInt32? {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard part.count <= 3, let number = Decimal.integer(part), number <= 255,
                part.count == 1 || part.first != UInt8(ascii: "0")
            else { return nil }
            address = address << 8 | UInt32(number)
        }
        return address
    }

    private static func v6(_ bytes: [UInt8]) -> IPAddress? {
        guard bytes.count <= 45 else { return nil }
        var groups: [UInt16] = []
        var gap: Int?
        var rest = bytes[...]
        if rest.starts(with: [0x3A, 0x3A]) {
            gap = 0
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            let part = rest.prefix { $0 != UInt8(ascii: ":") }
            rest = rest[part.endIndex...]
            if rest.isEmpty, part.contains(UInt8(ascii: ".")) {
                guard let tail = self.v4(Array(part)) else { return nil }
                groups += [UInt16(truncatingIfNeeded: tail >> 16), UInt16(truncatingIfNeeded: tail)]
                break
            }
            guard let group = self.group(part) else { return nil }
            groups.append(group)
            guard !rest.isEmpty else { break }
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: ":") {
                guard gap == nil else { return nil }
                gap = groups.count
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        return self.v6(groups, gap: gap)
    }

    private static func group(_ part: ArraySlice<UInt8>) -> UInt16? {
        guard (1...4).contains(part.count) else { return nil }
        var number: UInt16 = 0
        for byte in part {
            guard let digit = Hexadecimal.digit(byte) else { return nil }
            number = number << 4 | UInt16(digit)
        }
        return number
    }

    private static func v6(_ groups: [UInt16], gap: Int?) -> IPAddress? {
        var all = groups
        if let gap {
            // `::` stands for at least one group of zeros.
            guard groups.count < 8 else { return nil }
            all.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
        }
        guard all.count == 8 else { return nil }
        func half(_ part: ArraySlice<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
        return .v6(high: half(all[..<4]), low: half(all[4...]))
    }
}
