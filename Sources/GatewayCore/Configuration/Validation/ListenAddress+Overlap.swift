extension ListenAddress {
    /// Whether a socket at one of them serves as well at the other: a Unix socket's mode is its file's.
    func isSamePlace(as other: ListenAddress) -> Bool {
        if case .unix(let path, _) = self, case .unix(let otherPath, _) = other { return path == otherPath }
        return self == other
    }

    /// The same with the port that the system picked, where it was to pick one.
    func picked(_ port: UInt16) -> ListenAddress {
        switch self {
        case .tcp(let address, 0): .tcp(address, port: port)
        case .tcpAny(0): .tcpAny(port: port)
        case .tcp, .tcpAny, .unix, .adopted: self
        }
    }

    /// Whether both would take the same connections. Port 0 overlaps nothing, as each gets a port of its own.
    func overlaps(_ other: ListenAddress) -> Bool {
        switch (self, other) {
        case (.unix(let path, _), .unix(let otherPath, _)): path == otherPath
        case (.adopted(let socket), .adopted(let otherSocket)): socket == otherSocket
        case (.tcpAny(let port), .tcp(_, let otherPort)), (.tcp(_, let port), .tcpAny(let otherPort)),
            (.tcpAny(let port), .tcpAny(let otherPort)):
            port != 0 && port == otherPort
        case (.tcp(let address, let port), .tcp(let otherAddress, let otherPort)):
            port != 0 && port == otherPort && address.bitWidth == otherAddress.bitWidth
                && (address == otherAddress || address.isUnspecified || otherAddress.isUnspecified)
        case (.unix, _), (.adopted, _), (.tcp, _), (.tcpAny, _): false
        }
    }
}

extension IPAddress {
    /// 0.0.0.0 or ::, which stand for every address of their family.
    var isUnspecified: Bool { self == .v4(0) || self == .v6(high: 0, low: 0) }
}
