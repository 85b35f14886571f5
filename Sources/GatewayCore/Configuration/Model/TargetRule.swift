import StreamTransport

/// One entry of `control.targets`: places that connections opened by command may lead to.
package struct TargetRule: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        /// Every address of a kind.
        case kind(AddressKind)
        case block(AddressBlock)
        /// A name; it may lead to any address but a special one.
        case host(HostPattern)
        /// A Unix socket by its path.
        case socketFile(String)
        /// Every Unix socket below a folder, whose path ends in `/`.
        case socketFolder(String)
    }

    package let place: Place
    package let ports: ClosedRange<UInt16>

    package init(_ place: Place, ports: ClosedRange<UInt16> = 1...65535) {
        self.place = place
        self.ports = ports
    }

    /// - Parameter host: the name that was asked for, in lower case; `nil` where an address was.
    func allows(_ address: SocketAddress, askedFor host: String?) -> Bool {
        guard let ip = address.ipAddress, let port = address.port else { return self.allows(socket: address) }
        guard self.ports.contains(port) else { return false }
        switch self.place {
        case .kind(let kind): return ip.kind == kind
        case .block(let block): return block.contains(ip)
        case .host(let pattern): return host.map(pattern.matches) == true && ip.kind != .special
        case .socketFile, .socketFolder: return false
        }
    }

    private func allows(socket address: SocketAddress) -> Bool {
        guard case .unix(let path) = address else { return false }
        switch self.place {
        case .socketFile(let allowed): return path == allowed
        // A path with dots could lead out of the folder again.
        case .socketFolder(let folder): return path.hasPrefix(folder) && !path.split(separator: "/").contains("..")
        case .kind, .block, .host: return false
        }
    }
}
