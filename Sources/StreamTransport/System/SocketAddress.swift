/// Where a socket is: an IPv4 or IPv6 address with its port, or the path of a Unix socket.
package enum SocketAddress: Hashable, Sendable {
    /// - Parameter address: the four bytes, the first on the wire highest.
    case ipv4(address: UInt32, port: UInt16)
    /// - Parameters:
    ///   - high: the first eight bytes on the wire; `low`: the last eight.
    ///   - scope: the interface index of a link-local address, else 0.
    case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)
    /// A path of at most 107 bytes; empty for a socket without a name. A leading `@` stands for the abstract name
    /// space.
    case unix(path: String)

    /// Whether one that listens here may be reached at another address: any of the machine's, or a path with no meaning.
    var isManyPlaces: Bool {
        switch self {
        case .ipv4(let address, _): address == 0
        case .ipv6(let high, let low, _, _): high == 0 && (low == 0 || low >> 32 == 0xffff)
        case .unix: true
        }
    }

    /// Whether it is that of a Unix socket.
    package var isSocketFile: Bool {
        switch self {
        case .unix: true
        case .ipv4, .ipv6: false
        }
    }

    /// An IPv4 address that is written as IPv6 (`::ffff:a.b.c.d`, RFC 4291 §2.5.5.2) as what it is; else itself.
    package var unmapped: SocketAddress {
        guard case .ipv6(0, let low, _, let port) = self, low >> 32 == 0xFFFF else { return self }
        return .ipv4(address: UInt32(truncatingIfNeeded: low), port: port)
    }

    package var port: UInt16? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, _, _, let port): port
        case .unix: nil
        }
    }
}
