/// The interfaces that a connection may use, and the properties of the chosen one.
package struct PathOptions: Hashable, Sendable {
    /// Interfaces of these classes are not used. Default: none.
    package var forbidden: InterfaceClasses = []
    /// Opens sockets of Multipath TCP (RFC 8684) where the kernel has them. Default: false.
    package var usesMultipath = false
    /// Whether `ConnectionPath` is determined when the connection is open, which takes a few system calls.
    /// Default: false.
    package var isReported = false

    package init() {}
}

/// The way that a connection takes.
package struct ConnectionPath: Hashable, Sendable {
    /// Of the interface that its packets leave by.
    package var classes: InterfaceClasses = []
    /// Whether it uses Multipath TCP: the peer does too.
    package var isMultipath = false

    package init() {}
}

/// Why this machine's own networks kept a connection from being tried.
package enum OfflineCause: Hashable, Sendable {
    /// No route, no source address, or no link.
    case noRoute(SystemError)
    /// Only interfaces of these classes lead to the address, and they may not be used.
    case forbidden(InterfaceClasses)
}

/// The interface for a connection that may not use every one.
package enum PathChoice: Hashable, Sendable {
    /// The one that the kernel chooses.
    case any
    /// This one, although the kernel would choose another.
    case through(UInt32)
    case refused(InterfaceClasses)
    /// The system's error is that of connecting.
    case noRoute(SystemError)

    /// Most interfaces that are considered.
    package static let interfaceLimit = 64

    /// - Parameter forbidden: classes that may not be used; without any, nothing is asked of the system.
    package init(to address: SocketAddress, forbidding forbidden: InterfaceClasses, on loop: Loop) {
        guard !forbidden.isEmpty, !address.isSocketFile, !address.isLoopback else {
            self = .any
            return
        }
        switch loop.system.route(to: address, through: nil) {
        case .failure(let error): self = .noRoute(error)
        case .success(let route):
            let used = loop.classes(ofInterface: route.interface).intersection(forbidden)
            self = used.isEmpty ? .any : Self.detour(around: used, to: address, forbidden, loop)
        }
    }

    private static func detour(
        around used: InterfaceClasses, to address: SocketAddress, _ forbidden: InterfaceClasses, _ loop: Loop
    ) -> PathChoice {
        let others = loop.system.usableInterfaces.prefix(self.interfaceLimit).filter { interface in
            guard loop.classes(ofInterface: interface).isDisjoint(with: forbidden) else { return false }
            if case .success = loop.system.route(to: address, through: interface) { return true }
            return false
        }
        return others.first.map { .through($0) } ?? .refused(used)
    }
}

extension Loop {
    /// None of an interface that does not exist. Metered interfaces are known where a connection depends on them.
    func classes(ofInterface interface: UInt32) -> InterfaceClasses {
        let metered = PathMonitor.shared(on: self).metered.networks.interfaces
        return self.system.classes(ofInterface: interface, metered: metered)
    }
}

extension SocketAddress {
    /// 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        switch self.unmapped {
        case .ipv4(let address, _): address >> 24 == 127
        case .ipv6(let high, let low, _, _): high == 0 && low == 1
        case .unix: false
        }
    }
}

extension SocketConnection {
    /// The way that it takes now.
    /// - Parameter options: with which it was opened.
    package func path(_ options: PathOptions) -> ConnectionPath {
        var path = ConnectionPath()
        path.isMultipath = options.usesMultipath && self.loop.system.isMultipath(self.descriptor)
        guard let peer = self.peerAddress, !peer.isLoopback, case .success(let route) = self.route(to: peer) else {
            return path
        }
        path.classes = self.loop.classes(ofInterface: route.interface)
        return path
    }

    private func route(to peer: SocketAddress) -> Result<Route, SystemError> {
        // A connection that was bound to an interface keeps its source address.
        let system = self.loop.system
        let chosen = system.route(to: peer, through: nil)
        guard case .success(let route) = chosen, let own = self.localAddress, let source = route.source,
            !source.isSameHost(as: own)
        else { return chosen }
        let others = system.usableInterfaces.prefix(PathChoice.interfaceLimit)
        let found = others.lazy.compactMap { try? system.route(to: peer, through: $0).get() }.first {
            $0.source?.isSameHost(as: own) == true
        }
        return found.map { .success($0) } ?? chosen
    }
}

extension SocketAddress {
    /// Whether both are addresses of the same host, whatever their ports.
    package func isSameHost(as other: SocketAddress) -> Bool {
        switch (self.unmapped, other.unmapped) {
        case (.ipv4(let left, _), .ipv4(let right, _)): left == right
        case (.ipv6(let high, let low, _, _), .ipv6(let otherHigh, let otherLow, _, _)):
            high == otherHigh && low == otherLow
        default: false
        }
    }
}
