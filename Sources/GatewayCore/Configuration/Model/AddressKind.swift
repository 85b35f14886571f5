/// What an address is for, as far as it matters to who may be connected to.
package enum AddressKind: String, Sendable, Hashable, CaseIterable {
    /// Routed on the Internet.
    case worldwide = "public"
    /// This machine: 127.0.0.0/8, ::1.
    case loopback
    /// Networks of one's own: RFC 1918, RFC 6598, RFC 4193.
    case `private`
    /// What no connection should go to by chance: link-local addresses, those of cloud metadata services, multicast,
    /// the unspecified address, and what is reserved.
    case special
}

extension IPAddress {
    package var kind: AddressKind {
        switch self.unmapped {
        case .v4(let bits): Self.kind(v4: bits)
        case .v6(let high, let low): Self.kind(v6: high, low)
        }
    }

    /// IANA's registry of special addresses (RFC 6890), and the two metadata services on addresses that look public or
    /// private.
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
        return [0xC0_0000, 0xC0_0002, 0xC0_5863, 0xC6_3364, 0xCB_0071].contains(bits >> 8) ? .special : .worldwide
    }

    private static func kind(v6 high: UInt64, _ low: UInt64) -> AddressKind {
        if high == 0, low == 1 { return .loopback }
        // fd00:ec2::254.
        if high == 0xFD00_0EC2_0000_0000, low == 0x254 { return .special }
        if high >> 57 == 0xFC >> 1 { return .private }
        // Addresses that carry an IPv4 one lead where that one does: NAT64 (RFC 6052) and 6to4 (RFC 3056).
        if high == 0x0064_FF9B_0000_0000, low >> 32 == 0 { return Self.carried(UInt32(truncatingIfNeeded: low)) }
        if high >> 48 == 0x2002 { return Self.carried(UInt32(truncatingIfNeeded: high >> 16)) }
        // Of global unicast, Teredo, ORCHID and documentation are left out.
        guard high >> 61 == 1, high >> 41 != 0x2001_0000 >> 9, high >> 32 != 0x2001_0DB8, high >> 44 != 0x3FFF0 else {
            return .special
        }
        return .worldwide
    }

    private static func carried(_ bits: UInt32) -> AddressKind {
        Self.kind(v4: bits) == .worldwide ? .worldwide : .special
    }
}
