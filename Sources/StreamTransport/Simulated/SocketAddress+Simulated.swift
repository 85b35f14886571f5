extension SocketAddress {
    /// The same address with another port; a Unix path as it is.
    func with(port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address: address, port: port)
        case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
        case .unix: self
        }
    }

    /// What connecting to this address reaches: Linux takes the unspecified address for loopback.
    var reachable: SocketAddress {
        switch self {
        case .ipv4(0, let port): .ipv4(address: 0x7f00_0001, port: port)
        case .ipv6(0, 0, _, let port): .ipv6(high: 0, low: 1, scope: 0, port: port)
        case .ipv4, .ipv6, .unix: self
        }
    }

    /// Where a process that is `process` to the others connects from: loopback to loopback, else its own address, whose
    /// IPv6 twin lies in 2001:db8::/96.
    func source(_ process: UInt32) -> SocketAddress {
        switch self {
        case .ipv4(let address, _) where address >> 24 == 127: .ipv4(address: 0x7f00_0001, port: 0)
        case .ipv4: .ipv4(address: process, port: 0)
        case .ipv6(0, 1, _, _): self
        case .ipv6: .ipv6(high: 0x2001_0db8_0000_0000, low: UInt64(process), scope: 0, port: 0)
        case .unix: .unix(path: "")
        }
    }
}
