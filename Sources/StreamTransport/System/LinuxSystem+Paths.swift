import ByteKernels
import CLinux

/// Questions about routes and interfaces (rtnetlink(7), netdevice(7)). Each takes a few system calls.
extension LinuxSystem {
    /// RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV4_RULE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE and
    /// RTNLGRP_IPV6_RULE.
    private static let notifiedGroups: UInt32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x4_0000

    package func openPathNotifications() -> Result<Descriptor, SystemError> {
        guard self.reserve.hasCapacity else { return .failure(.processDescriptorsExhausted) }
        let opened = sluice_route_socket(Self.notifiedGroups)
        return opened >= 0 ? .success(Descriptor(opened)) : .failure(.last)
    }

    package func route(to address: SocketAddress, through interface: UInt32?) -> Result<Route, SystemError> {
        KernelRoutes.route(to: address, through: interface)
    }

    package func classes(ofInterface interface: UInt32, metered: Set<String>) -> InterfaceClasses {
        guard let name = NetworkInterface.name(of: interface) else { return [] }
        return NetworkInterface.classes(of: name, isMetered: metered.contains(name))
    }

    /// As the environment had it when it was first needed.
    private static let systemBusAddress = unsafe getenv(BusAddress.variable).map { unsafe String(cString: $0) }

    package var systemBus: SocketAddress? {
        guard let text = Self.systemBusAddress, !text.isEmpty else { return BusAddress.standard }
        return BusAddress.socket(text)
    }

    package var usableInterfaces: [UInt32] { NetworkInterface.usable }

    package func isUsable(interface: UInt32) -> Bool {
        NetworkInterface.name(of: interface).map { NetworkInterface.isUsable($0) } ?? true
    }

    package func isMultipath(_ descriptor: Descriptor) -> Bool { sluice_is_multipath(descriptor.number) == 1 }
}

/// Asks the kernel how it would send packets. From any thread.
enum KernelRoutes {
    /// Longer than any answer.
    private static let answerLimit = 8 << 10

    static func route(to address: SocketAddress, through interface: UInt32? = nil) -> Result<Route, SystemError> {
        if interface != nil, case .failure(let error) = self.ask(address, interface, wantsEntry: true) {
            return .failure(error)
        }
        let answer = self.ask(address, interface, wantsEntry: false)
        // Without a source address no connection can be made.
        if case .success(let route) = answer, route.interface > 0, route.source == nil {
            return .failure(.networkUnreachable)
        }
        return answer
    }

    private static func ask(
        _ address: SocketAddress, _ interface: UInt32?, wantsEntry: Bool
    ) -> Result<Route, SystemError> {
        guard let question = RouteMessages.question(address, through: interface, wantsEntry: wantsEntry) else {
            return .success(Route(interface: 0))
        }
        let socket = sluice_route_socket(0)
        guard socket >= 0 else { return self.guess(address) }
        defer { _ = CLinux.close(socket) }
        let sent = unsafe question.withUnsafeBytes { unsafe sluice_send(socket, $0.baseAddress, $0.count) }
        guard sent == question.count else { return self.guess(address) }
        // The kernel has answered before the call returns.
        var answer = [UInt8](repeating: 0, count: self.answerLimit)
        let count = unsafe answer.withUnsafeMutableBytes { unsafe sluice_receive(socket, $0.baseAddress, $0.count) }
        guard count > 0 else { return self.guess(address) }
        answer.removeLast(answer.count - count)
        return answer.withRawSpan { self.result($0) } ?? self.guess(address)
    }

    /// - Returns: `nil` if there is no answer.
    private static func result(_ answer: RawSpan) -> Result<Route, SystemError>? {
        var messages = RouteMessages()
        while let message = messages.next(in: answer) {
            switch message {
            case .route(let route?): return .success(route)
            case .barrier: return .failure(.networkUnreachable)
            case .failure(let number) where number != 0: return .failure(SystemError(number))
            default: continue
            }
        }
        return nil
    }

    /// Where the kernel does not answer such questions: connecting a datagram socket chooses the source address and sends
    /// nothing.
    private static func guess(_ address: SocketAddress) -> Result<Route, SystemError> {
        let probe = socket(address.family, sluice_datagram_type(), 0)
        guard probe >= 0 else { return .success(Route(interface: 0)) }
        defer { _ = CLinux.close(probe) }
        let isRoute = unsafe address.withSockaddr { unsafe sluice_connect(probe, $0, $1) } == 0
        return isRoute ? .success(Route(interface: 0)) : .failure(.last)
    }
}

/// This machine's network interfaces. From any thread.
enum NetworkInterface {
    /// Longer than any `uevent` file.
    private static let ueventLimit = 16 << 10
    /// As the environment had it when it was first needed.
    private static let declared = DeclaredInterfaces(
        unsafe getenv(DeclaredInterfaces.variable).map { unsafe String(cString: $0) } ?? "")

    static func name(of index: UInt32) -> String? {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard index > 0, unsafe if_indextoname(index, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func classes(of name: String, isMetered: Bool) -> InterfaceClasses {
        if let classes = self.declared.classes(of: name) { return classes }
        let metered: InterfaceClasses = isMetered ? .expensive : []
        guard !name.contains("/"),
            let text = try? SystemFile.read("/sys/class/net/\(name)/uevent", limit: self.ueventLimit)
        else { return metered }
        return metered.union(InterfaceClasses(uevent: String(decoding: text, as: UTF8.self)))
    }

    /// Those that are up, without loopback, those known to have a link first.
    static var usable: [UInt32] {
        var found = [UInt32](repeating: 0, count: PathChoice.interfaceLimit)
        let count = unsafe sluice_usable_interfaces(&found, Int32(found.count))
        return Array(found.prefix(Int(max(0, count))))
    }

    static func isUsable(_ name: String) -> Bool {
        let flags = unsafe sluice_interface_flags(name)
        let needed = Int32(IFF_UP) | Int32(IFF_RUNNING)
        return flags >= 0 && flags & needed == needed
    }
}
