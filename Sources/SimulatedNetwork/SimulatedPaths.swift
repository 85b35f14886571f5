import StreamTransport

/// Routes and interfaces of the simulated network.
extension SimulatedSystem {
    /// A listener of the test at this address sends the notifications of the kernel.
    package static let pathNotifications = SocketAddress.unix(path: "@paths")

    package func route(to address: SocketAddress, through interface: UInt32?) -> Result<Route, SystemError> {
        if self.network.connectScripts[address] == .noRoute { return .failure(.networkUnreachable) }
        guard let routes = self.network.routes[address.with(port: 0)] else { return .success(Route(interface: 0)) }
        let route = routes.first { interface == nil || interface == $0.interface }
        return route.map { .success($0) } ?? .failure(.networkUnreachable)
    }

    package func openPathNotifications() -> Result<Descriptor, SystemError> {
        self.connect(Self.pathNotifications, ConnectOptions())
    }

    package func classes(ofInterface interface: UInt32, metered: Set<String>) -> InterfaceClasses {
        let classes = self.network.interfaceClasses[interface] ?? []
        return metered.contains("near\(interface)") ? classes.union(.expensive) : classes
    }

    package var systemBus: SocketAddress? { self.network.systemBus }

    package var usableInterfaces: [UInt32] {
        let all = Set(self.network.routes.values.joined().map(\.interface))
        return all.subtracting(self.network.unusableInterfaces).sorted()
    }

    package func isUsable(interface: UInt32) -> Bool { !self.network.unusableInterfaces.contains(interface) }

    package func isMultipath(_ descriptor: Descriptor) -> Bool { false }
}
