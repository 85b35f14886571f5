/// The order in which addresses are tried (RFC 8305 §4): the resolver's own order, with the families taking turns from
/// the first on.
package enum AddressOrder {
    package static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let leading = addresses.filter { $0.isSameFamily(as: first) }
        let others = addresses.filter { !$0.isSameFamily(as: first) }
        var order: [SocketAddress] = []
        for index in 0..<max(leading.count, others.count) {
            if index < leading.count { order.append(leading[index]) }
            if index < others.count { order.append(others[index]) }
        }
        return order
    }
}

extension SocketAddress {
    func isSameFamily(as other: SocketAddress) -> Bool {
        switch (self, other) {
        case (.ipv4, .ipv4), (.ipv6, .ipv6), (.unix, .unix): true
        case (.ipv4, _), (.ipv6, _), (.unix, _): false
        }
    }
}
