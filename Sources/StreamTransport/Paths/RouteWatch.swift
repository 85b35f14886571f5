/// Notices that the kernel would send a connection's packets another way than when it was opened. Confined to its loop.
package final class RouteWatch {
    private let loop: Loop
    private let local: SocketAddress
    private let peer: SocketAddress
    private let forbidden: InterfaceClasses
    private let better: () -> Void
    /// As the connection was opened.
    private let first: Route
    /// As last seen.
    private var latest: Route

    /// Begins; holds itself until `cancel`.
    /// - Parameters:
    ///   - forbidden: ways over interfaces of these classes are not reported.
    ///   - better: called for each new route through another interface, or with another source address.
    /// - Returns: `nil` for a connection whose route cannot change: to this machine itself.
    package init?(
        of local: SocketAddress?, to peer: SocketAddress?, forbidding forbidden: InterfaceClasses, on loop: Loop,
        better: @escaping () -> Void
    ) {
        guard let local, let peer, !peer.isSocketFile, !peer.isLoopback, !peer.isSameHost(as: local),
            case .success(let route) = loop.system.route(to: peer, through: nil)
        else { return nil }
        self.loop = loop
        self.local = local
        self.peer = peer
        self.forbidden = forbidden
        self.better = better
        self.first = route
        self.latest = route
        PathMonitor.shared(on: loop).add(self)
    }

    package func cancel() {
        PathMonitor.shared(on: self.loop).remove(self)
    }
}

extension RouteWatch: PathObserver {
    package func pathsChanged() {
        guard case .success(let route) = self.loop.system.route(to: self.peer, through: nil), route != self.latest
        else { return }
        self.latest = route
        let isOwn = route.interface == self.first.interface && route.source?.isSameHost(as: self.local) != false
        guard !isOwn, self.loop.classes(ofInterface: route.interface).isDisjoint(with: self.forbidden) else {
            return
        }
        self.better()
    }
}
