import WireText

/// An IPv4 or IPv6 address.
package enum IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The four bytes in network byte order.
    case v4(UInt32)
    /// The first and the last eight bytes in network byte order.
    case v6(high: UInt64, low: UInt64)

    /// 127.0.0.1.
    package static let loopback = IPAddress.v4(0x7F00_0001)

    package var bitWidth: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }

    /// The address with all bits after the first `length` set to 0. `length` is clamped to 0...`bitWidth`.
    package func prefix(_ length: Int) -> IPAddress {
        switch self {
        case .v4(let bits): .v4(bits & Self.mask(length))
        case .v6(let high, let low): .v6(high: high & Self.mask(length), low: low & Self.mask(length - 64))
        }
    }

    /// The IPv4 address of an IPv4-mapped one, `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2); else `self`.
    package var unmapped: IPAddress {
        guard case .v6(0, let low) = self, low >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: low))
    }

    private static func mask<Word: FixedWidthInteger & UnsignedInteger>(_ length: Int) -> Word {
        // Swift's smart shift gives 0 if all bits are shifted out.
        ~(Word.max >> max(0, min(length, Word.bitWidth)))
    }

    /// Dotted decimal, or the form of RFC 5952.
    package var description: String {
        switch self {
        case .v4(let bits):
            stride(from: 24, through: 0, by: -8).map { String(bits >> UInt32($0) & 0xFF) }.joined(separator: ".")
        case .v6(let high, let low):
            Self.canonicalText(
                of: [high, low].flatMap { half in
                    stride(from: 48, through: 0, by: -16).map { UInt16(truncatingIfNeeded: half >> UInt64($0)) }
                })
        }
    }

    /// RFC 5952 §4: lower case, no leading zeros, the longest run of at least two zero groups (the first of equals) as
    /// `::`.
    private static func canonicalText(of groups: [UInt16]) -> String {
        var best = 0..<0
        var start = 0
        while start < groups.count {
            let end = groups[start...].firstIndex { $0 != 0 } ?? groups.count
            if end - start > max(best.count, 1) { best = start..<end }
            start = end + 1
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard !best.isEmpty else { return text(0..<groups.count) }
        return text(0..<best.lowerBound) + "::" + text(best.upperBound..<groups.count)
    }
}

/// A block of addresses, written `10.0.0.0/8`.
package struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// The block's first address.
    package let address: IPAddress
    /// Number of leading bits that all addresses of the block share: up to 32 or 128.
    package let prefixLength: Int

    /// A block of IPv4-mapped addresses (`::ffff:10.0.0.0/104`) becomes the IPv4 block.
    /// - Returns: `nil` unless `prefixLength` fits the address and the bits after it are 0.
    package init?(_ address: IPAddress, prefixLength: Int) {
        guard prefixLength >= 0, prefixLength <= address.bitWidth,
            address.prefix(prefixLength) == address
        else { return nil }
        let isMapped = prefixLength >= 96 && address.unmapped != address
        self.address = isMapped ? address.unmapped : address
        self.prefixLength = isMapped ? prefixLength - 96 : prefixLength
    }

    /// 127.0.0.0/8 and ::1. A peer on a Unix socket has no address and counts as loopback.
    package static let loopback: [AddressBlock] = [
        AddressBlock(unchecked: .v4(0x7F00_0000), prefixLength: 8),
        AddressBlock(unchecked: .v6(high: 0, low: 1), prefixLength: 128),
    ]

    /// Whether the block contains `address`; an IPv4-mapped address counts as IPv4.
    package func contains(_ address: IPAddress) -> Bool {
        address.unmapped.prefix(self.prefixLength) == self.address
    }

    private init(unchecked address: IPAddress, prefixLength: Int) {
        self.address = address
        self.prefixLength = prefixLength
    }

    package var description: String { "\(self.address)/\(self.prefixLength)" }
}

/// Class of an address, for access rules.
package enum AddressKind: String, Sendable, Hashable, CaseIterable {
    /// Routed on the Internet.
    case global = "public"
    /// This machine: 127.0.0.0/8, ::1.
    case loopback
    /// Private networks: RFC 1918, RFC 6598, RFC 4193.
    case `private`
    /// Link-local addresses, those of cloud metadata services, multicast, the unspecified address, and reserved ones: no
    /// connection should reach them by accident.
    case special
}

extension IPAddress {
    /// 127.0.0.0/8 (RFC 1122 §3.2.1.3) and ::1 (RFC 4291 §2.5.3).
    package var isLoopback: Bool {
        switch self.unmapped {
        case .v4(let bits): bits >> 24 == 127
        case .v6(let high, let low): high == 0 && low == 1
        }
    }

    package var kind: AddressKind {
        switch self.unmapped {
        case .v4(let bits): Self.kind(v4: bits)
        case .v6(let high, let low): Self.kind(v6: high, low)
        }
    }

    /// By IANA's registry of special-purpose addresses (RFC 6890). Two metadata services have public or private addresses.
    private static func kind(v4 bits: UInt32) -> AddressKind {
        // 168.63.129.16 and 100.100.100.200.
        if bits == 0xA83F_8110 || bits == 0x6464_64C8 { return .special }
        switch bits >> 24 {
        case 127: return .loopback
        case 10: return .private
        case 0, 224...255: return .special
        default: break
        }
        switch bits >> 16 {
        case 0xA9FE, 0xC612, 0xC613: return .special
        case 0xC0A8: return .private
        default: break
        }
        if bits >> 20 == 0xAC1 || bits >> 22 == 0x6440_0000 >> 22 { return .private }
        // 192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 198.51.100.0/24, 203.0.113.0/24.
        return [0xC0_0000, 0xC0_0002, 0xC0_5863, 0xC6_3364, 0xCB_0071].contains(bits >> 8) ? .special : .global
    }

    private static func kind(v6 high: UInt64, _ low: UInt64) -> AddressKind {
        if high == 0, low == 1 { return .loopback }
        // fd00:ec2::254.
        if high == 0xFD00_0EC2_0000_0000, low == 0x254 { return .special }
        if high >> 57 == 0xFC >> 1 { return .private }
        // NAT64 (RFC 6052) and 6to4 (RFC 3056) addresses lead to the IPv4 address they contain.
        if high == 0x0064_FF9B_0000_0000, low >> 32 == 0 {
            return Self.kind(embeddedV4: UInt32(truncatingIfNeeded: low))
        }
        if high >> 48 == 0x2002 { return Self.kind(embeddedV4: UInt32(truncatingIfNeeded: high >> 16)) }
        // Global unicast except Teredo, ORCHID and documentation.
        guard high >> 61 == 1, high >> 41 != 0x2001_0000 >> 9, high >> 32 != 0x2001_0DB8, high >> 44 != 0x3FFF0 else {
            return .special
        }
        return .global
    }

    private static func kind(embeddedV4 bits: UInt32) -> AddressKind {
        Self.kind(v4: bits) == .global ? .global : .special
    }
}

/// Parses addresses strictly: four decimals without leading zeros, or the forms of RFC 4291 §2.2 without a zone.
package enum AddressText {
    /// - Returns: `nil` for anything else.
    package static func address(_ text: Substring.UTF8View) -> IPAddress? {
        if text.contains(UInt8(ascii: ":")) { return self.v6(Array(text)) }
        return self.v4(Array(text)).map { .v4($0) }
    }

    package static func v4(_ bytes: [UInt8]) -> UInt32? {
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
            guard let digit = byte.hexadecimalValue else { return nil }
            number = number << 4 | UInt16(digit)
        }
        return number
    }

    private static func v6(_ groups: [UInt16], gap: Int?) -> IPAddress? {
        var all = groups
        if let gap {
            // `::` replaces at least one group of zeros.
            guard groups.count < 8 else { return nil }
            all.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
        }
        guard all.count == 8 else { return nil }
        func half(_ part: ArraySlice<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
        return .v6(high: half(all[..<4]), low: half(all[4...]))
    }
}

/// Parses host names and addresses in URLs.
package enum HostText {
    /// Labels of letters, digits, `-` and `_`, 1 to 63 bytes each, at most 253 together; the last label has not only
    /// digits, as that would be an address (RFC 1123 §2.1).
    /// - Returns: the name in lower case; `nil` if it is invalid.
    package static func name(_ text: Substring) -> String? {
        let bytes = Array(text.utf8)
        guard (1...253).contains(bytes.count) else { return nil }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy(NameText.isLabelByte)
            else { return nil }
        }
        guard let last = labels.last, !last.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return text.lowercased()
    }

    /// Splits `host:port`, `host`, `[v6]:port` or `[v6]`.
    package static func split(_ authority: Substring) -> (host: Substring, isBracketed: Bool, port: Substring?)? {
        let utf8 = authority.utf8
        if utf8.first == UInt8(ascii: "[") {
            guard let end = utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let host = authority[utf8.index(after: utf8.startIndex)..<end]
            let rest = authority[utf8.index(after: end)...]
            guard !rest.isEmpty else { return (host, true, nil) }
            guard rest.utf8.first == UInt8(ascii: ":") else { return nil }
            return (host, true, rest.dropFirst())
        }
        guard let colon = utf8.firstIndex(of: UInt8(ascii: ":")) else { return (authority, false, nil) }
        return (authority[..<colon], false, authority[utf8.index(after: colon)...])
    }
}

/// Syntax of names, tokens and resources.
package enum NameText {
    /// 1 to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
    static func isName(_ text: some StringProtocol) -> Bool {
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, Self.isAlphanumeric(first) else {
            return false
        }
        return text.utf8.allSatisfy { Self.isLabelByte($0) || $0 == UInt8(ascii: ".") }
    }

    /// 1 to 64 letters, digits and `_`, not beginning with a digit.
    static func isParameter(_ text: some StringProtocol) -> Bool {
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, !(0x30...0x39).contains(first) else {
            return false
        }
        return text.utf8.allSatisfy { Self.isAlphanumeric($0) || $0 == 0x5F }
    }

    /// A token (RFC 9110 §5.6.2) of 1 to 256 bytes.
    package static func isToken(_ text: some StringProtocol) -> Bool {
        (1...256).contains(text.utf8.count) && text.isToken
    }

    /// Whether a path or query may contain the byte (RFC 3986 §3.3, §3.4), `%` included.
    static func isResourceByte(_ byte: UInt8) -> Bool {
        Self.isAlphanumeric(byte) || "-._~!$&'()*+,;=:@/?%".utf8.contains(byte)
    }

    /// Letters, digits, `-` and `_`.
    fileprivate static func isLabelByte(_ byte: UInt8) -> Bool {
        Self.isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit }
}
