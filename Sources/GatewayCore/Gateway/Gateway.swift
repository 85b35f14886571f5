import StreamTransport
import Synchronization

/// The whole gateway: loops, listeners, and the life of the process around them. Callable from any thread.
package final class Gateway: Sendable {
    /// Where a listener can be reached.
    package struct Place: Sendable {
        package let listener: ListenerConfiguration
        package let address: SocketAddress
    }

    struct State {
        var plan: GatewayPlan?
        var places: [String: SocketAddress] = [:]
    }

    package let loops: [Loop]
    let shared: GatewayShared
    let parts: [LoopConfined<LoopGateway>]
    private let turn = Atomic<Int>(0)
    let state = Mutex(State())
    private let passedSockets: [PassedSocket]

    /// - Parameters:
    ///   - loops: running already; connections stay on the loop that accepted them.
    ///   - passedSockets: listening sockets from the service manager.
    package init(loops: [Loop], log: TunnelLog, configuration: GatewayConfiguration, passedSockets: [PassedSocket] = [])
    {
        self.loops = loops
        self.passedSockets = passedSockets
        let control = configuration.control
        let shared = GatewayShared(
            log: log, hub: ChatHub(loops: loops), admission: Admission(configuration),
            closedLimit: control.address == nil ? 0 : control.closedConnections,
            keepsHandshakes: control.address != nil && control.keepsHandshakes,
            journal: control.address == nil ? nil : EventJournal(), returnsMemory: true)
        self.shared = shared
        self.parts = loops.enumerated().map { index, loop in
            LoopConfined(LoopGateway(loop: loop, index: index, shared: shared))
        }
    }

    /// By the clock of its loops.
    package var now: MonotonicInstant { self.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0) }

    package var counters: GatewayCounters { self.shared.counters }

    /// The loop whose turn it is to take what somebody wants opened.
    func nextPart() -> LoopConfined<LoopGateway>? {
        guard !self.parts.isEmpty else { return nil }
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return self.parts[Int(UInt(bitPattern: turn) % UInt(self.parts.count))]
    }

    // MARK: Starting and reloading

    /// Opens all listeners.
    /// - Returns: where they listen, in the configuration's order.
    /// - Throws: `PlanFault`; nothing listens then.
    package func start(_ plan: GatewayPlan) async throws(PlanFault) -> [Place] {
        var opened: [(ListenerPlan, [Descriptor])] = []
        do throws(PlanFault) {
            for listener in plan.listeners { opened.append((listener, try self.openSockets(listener.configuration))) }
        } catch {
            for (_, descriptors) in opened { for descriptor in descriptors { descriptor.close() } }
            throw error
        }
        self.shared.withAdmission { $0.prepare(plan.configuration) }
        self.state.withLock { $0.plan = plan }
        try await self.serve(opened)
        return self.places
    }

    /// Where the listeners listen.
    package var places: [Place] {
        self.state.withLock { state in
            (state.plan?.listeners ?? []).compactMap { plan in
                state.places[plan.configuration.name].map { Place(listener: plan.configuration, address: $0) }
            }
        }
    }

    /// Puts a new configuration in the running one's place. Listeners whose address did not change go on listening;
    /// connections that are there keep the routes they came by, whether or not those changed.
    ///
    /// All that a listener needs is in force before it accepts, and is withdrawn only once it accepts nothing more: no
    /// client is refused for a reload.
    /// - Throws: `PlanFault`; everything then stays as it was.
    package func reload(_ configuration: GatewayConfiguration) async throws(PlanFault) {
        let former = self.state.withLock { $0.plan }
        let plan = try GatewayPlan(configuration, former: former)
        var opened: [(ListenerPlan, [Descriptor])] = []
        let kept = plan.listeners.filter { listener in
            let before = former?.listener(named: listener.configuration.name)?.configuration.address
            return before.map { listener.configuration.address.isSamePlace(as: $0) } ?? false
        }
        let keptNames = Set(kept.map(\.configuration.name))
        do throws(PlanFault) {
            for listener in plan.listeners where !keptNames.contains(listener.configuration.name) {
                try self.refuseTaken(listener.configuration, by: kept)
                let joins = self.isHeld(listener.configuration.address, by: former?.listeners ?? [])
                opened.append((listener, try self.openSockets(listener.configuration, joins: joins)))
            }
            for listener in kept { try self.setMode(listener.configuration) }
        } catch {
            for (_, descriptors) in opened { for descriptor in descriptors { descriptor.close() } }
            throw error
        }
        self.shared.withAdmission { $0.prepare(configuration) }
        do throws(PlanFault) {
            try await self.serve(opened)
        } catch {
            if let former { self.shared.withAdmission { $0.reload(former.configuration) } }
            throw error
        }
        for listener in kept { await self.onEachLoop { $0.replace(listener) } }
        self.state.withLock { $0.plan = plan }
        await self.closeAll(of: former, but: plan)
        self.shared.withAdmission { $0.retire(allBut: configuration) }
        self.shared.journal?.publish(GatewayEvent(.reloaded))
    }

    /// Closes the listeners that are gone, and those whose name another has now.
    private func closeAll(of former: GatewayPlan?, but plan: GatewayPlan) async {
        await self.onEachLoop { $0.closeDisplaced() }
        for old in former?.listeners ?? [] where plan.listener(named: old.configuration.name) == nil {
            await self.closeListener(old.configuration.name)
        }
    }

    /// Tells those who follow events that a new configuration was no right one.
    package func reloadFailed(_ detail: String) {
        var event = GatewayEvent(.reloadFailed)
        event.detail = String(detail.prefix(1024))
        self.shared.journal?.publish(event)
    }

    /// Where events go; `nil` without a control plane.
    package var journal: EventJournal? { self.shared.journal }

    /// The file of a Unix socket that stays open takes the permission bits that it is to have now.
    private func setMode(_ listener: ListenerConfiguration) throws(PlanFault) {
        guard case .unix(let path, let mode) = listener.address,
            let error = self.loops.first?.system.setMode(mode, ofSocketFile: path)
        else { return }
        throw PlanFault("listener '\(listener.name)': mode of \(path): \(error)")
    }

    /// One socket for each loop: TCP listeners share the port, others the socket.
    /// - Parameter joins: a listener of ours has the address still, and is closed as soon as this one is there.
    private func openSockets(
        _ listener: ListenerConfiguration, joins: Bool = false
    ) throws(PlanFault) -> [Descriptor] {
        var descriptors: [Descriptor] = []
        do throws(SystemError) {
            for (index, loop) in self.loops.enumerated() {
                if index > 0, let first = descriptors.first, !listener.address.opensOnEachLoop {
                    descriptors.append(try first.duplicated().get())
                    continue
                }
                descriptors.append(try self.openSocket(listener, like: descriptors.first, joins: joins, on: loop))
            }
            return descriptors
        } catch {
            for descriptor in descriptors { descriptor.close() }
            let reason = error == .addressInUse && !joins ? "another process listens here" : "\(error)"
            throw PlanFault("listener '\(listener.name)' at \(listener.address): \(reason)")
        }
    }

    private func openSocket(
        _ listener: ListenerConfiguration, like first: Descriptor?, joins: Bool, on loop: Loop
    ) throws(SystemError) -> Descriptor {
        var options = ListenOptions()
        options.backlog = Int32(clamping: listener.backlog)
        if listener.address.opensOnEachLoop { options.portSharing = first == nil && !joins ? .begin : .join }
        switch listener.address {
        case .tcp(let address, let port):
            let picked = first.flatMap { loop.system.localAddress($0)?.port } ?? port
            return try loop.system.listen(SocketAddress(address, port: picked), options: options).get()
        case .tcpAny(let port):
            options.dualStack = true
            let picked = first.flatMap { loop.system.localAddress($0)?.port } ?? port
            let anywhere = SocketAddress.ipv6(high: 0, low: 0, scope: 0, port: picked)
            return try loop.system.listen(anywhere, options: options).get()
        case .unix(let path, let mode):
            options.mode = mode
            return try loop.system.listen(.unix(path: path), options: options).get()
        case .adopted(let wanted):
            guard let passed = wanted.find(in: self.passedSockets) else { throw .noSuchFile }
            return try passed.duplicated().get()
        }
    }

    /// Lets all of them accept.
    /// - Throws: none of them accepts then.
    private func serve(_ opened: [(listener: ListenerPlan, descriptors: [Descriptor])]) async throws(PlanFault) {
        let places = self.state.withLock { $0.places }
        var served = 0
        var fault: PlanFault?
        for (listener, descriptors) in opened {
            served += 1
            let name = listener.configuration.name
            let address = descriptors.first.flatMap { self.loops.first?.system.localAddress($0) }
            if let address { self.state.withLock { $0.places[name] = address } }
            guard let error = await self.serve(listener, on: descriptors) else { continue }
            fault = PlanFault("listener '\(name)': \(error)")
            break
        }
        guard let fault else { return }
        for (listener, _) in opened.prefix(served) {
            await self.onEachLoop { $0.withdraw(listener) }
        }
        for (_, descriptors) in opened.dropFirst(served) { for descriptor in descriptors { descriptor.close() } }
        self.state.withLock { $0.places = places }
        throw fault
    }

    private func serve(_ listener: ListenerPlan, on descriptors: [Descriptor]) async -> SystemError? {
        for (index, part) in self.parts.enumerated() {
            let descriptor = descriptors[index]
            let error = await part.value.loop.perform { () -> SystemError? in
                do throws(SystemError) {
                    try part.value.open(listener, on: descriptor)
                    return nil
                } catch {
                    return error
                }
            }
            guard let error else { continue }
            for rest in descriptors.dropFirst(index + 1) { rest.close() }
            return error
        }
        return nil
    }

    private func closeListener(_ name: String) async {
        await self.onEachLoop { $0.closeListener(name) }
        self.state.withLock { $0.places[name] = nil }
    }

    private func onEachLoop(_ body: @escaping @Sendable (LoopGateway) -> Void) async {
        for part in self.parts { await part.value.loop.perform { body(part.value) } }
    }

    // MARK: Ending

    /// What `drain` is going to do, for the log.
    package var drainNote: String {
        let settings = self.drainSettings
        let count = self.shared.withAdmission { $0.connections }
        return """
            draining: \(count) connections are told within \(DurationText(settings.closeSpread)), what is left is reset \
            after \(DurationText(settings.timeout))
            """
    }

    private var drainSettings: DrainSettings {
        self.state.withLock { $0.plan?.configuration.drain } ?? DrainSettings()
    }

    /// From the beginning of `drain` to its end at the latest.
    package var drainTimeout: Duration { self.drainSettings.timeout }

    /// Stops listening, asks every connection to end over the drain's close spread, and cuts what is left at its
    /// timeout. Returns when nothing is left.
    package func drain() async {
        let settings = self.drainSettings
        self.shared.journal?.publish(GatewayEvent(.drainStarted))
        defer { self.shared.journal?.publish(GatewayEvent(.drainEnded)) }
        await withTaskGroup(of: Void.self) { group in
            for part in self.parts {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        part.value.loop.execute {
                            part.value.drain(settings) { continuation.resume() }
                        }
                    }
                }
            }
        }
    }

    /// Cuts everything at once.
    package func abandon() async {
        await self.onEachLoop { $0.abandonAll() }
    }
}
