/// A block of addresses, written `10.0.0.0/8`.
package struct AddressBlock: Sendable, Hashable {
    /// The block's first address.
    package let address: IPAddress
    /// How many leading bits are the block's: up to 32 or 128.
    package let prefixLength: Int

    /// A block of IPv4 addresses written as IPv6 (`::ffff:10.0.0.0/104`) becomes the IPv4 block that it is.
    /// - Returns: `nil` unless `prefixLength` fits the address and the bits behind it are 0.
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

    /// Whether `address` lies in the block; an IPv4 address written as IPv6 (`::ffff:a.b.c.d`) counts as IPv4.
    package func contains(_ address: IPAddress) -> Bool {
        address.unmapped.prefix(self.prefixLength) == self.address
    }

    private init(unchecked address: IPAddress, prefixLength: Int) {
        self.address = address
        self.prefixLength = prefixLength
    }
}

extension AddressBlock: CustomStringConvertible {
    package var description: String { "\(self.address)/\(self.prefixLength)" }
}
