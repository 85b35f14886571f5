import StreamTransport

extension IPAddress {
    /// - Returns: `nil` for a Unix socket, which has no such address. The scope of a link-local address is left out.
    package init?(_ address: SocketAddress) {
        switch address {
        case .ipv4(let bits, _): self = .v4(bits)
        case .ipv6(let high, let low, _, _): self = .v6(high: high, low: low)
        case .unix: return nil
        }
    }

    package func socketAddress(port: UInt16) -> SocketAddress {
        switch self {
        case .v4(let bits): .ipv4(address: bits, port: port)
        case .v6(let high, let low): .ipv6(high: high, low: low, scope: 0, port: port)
        }
    }
}

extension [AddressBlock] {
    /// Whether one of the blocks holds `peer`. A peer on a Unix socket counts as 127.0.0.1.
    package func contains(_ peer: SocketAddress) -> Bool {
        let address = IPAddress(peer) ?? .loopback
        return self.contains { $0.contains(address) }
    }
}
