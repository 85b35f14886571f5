import StreamTransport

/// A network inside this process: sockets, names and a clock, all driven by one seed.
///
/// Loops call their `SimulatedSystem`, which answers at once; `run` advances virtual time, delivers data in flight and
/// gives turns to the loops with something to do, in random order, on the calling thread. The same seed, faults and
/// program give the same run to the byte, which `trace.fingerprint` proves.
///
/// The addresses form one flat space: a listener is reachable at its address from everywhere, loopback included.
package final class SimulatedNetwork {
    package let seed: UInt64
    /// May be changed at any time; connections keep the latency and buffers drawn for them.
    package var faults: FaultPlan
    package internal(set) var trace: SimulationTrace
    /// Calls on descriptors that are not open, double watches and the like: mistakes of the program under test. Empty
    /// in a sound run.
    package private(set) var misuses: [String] = []
    /// Results of connection attempts by address, instead of the fault plan's draw.
    package var connectScripts: [SocketAddress: ConnectScript] = [:]
    /// Routes to addresses, each with port 0, the preferred one first; to an address that is not listed there is one
    /// through an unknown interface. They do not affect connections, which `connectScripts` do.
    package var routes: [SocketAddress: [Route]] = [:]
    /// Of interfaces by index; an interface's name is `near` and its index.
    package var interfaceClasses: [UInt32: InterfaceClasses] = [:]
    /// Whether the next read of notifications about paths fails with `ENOBUFS`, and all that have arrived are lost.
    package var losesPathNotifications = false
    /// Where the system's message bus listens. Default: `nil`, there is none.
    package var systemBus: SocketAddress?
    /// Interfaces that are down.
    package var unusableInterfaces: Set<UInt32> = []
    /// Results of lookups. A name not listed is not found; numeric addresses need no entry.
    package var names: [String: NameScript] = [
        "localhost": .addresses([.ipv4(address: 0x7f00_0001, port: 0)], after: .microseconds(100))
    ]
    /// Most descriptors open in all processes together; one more is `ENFILE`.
    package var descriptorLimit = 1_000_000
    package internal(set) var openDescriptors = 0
    /// Most steps (turns, deliveries and leaps to the next instant) of all runs together. Turns that cost time can go
    /// round for ever without ever counting as spinning; a run that must end sets this.
    package var stepLimit = Int.max
    package internal(set) var stepsTaken = 0
    /// How far the wall clock was set forward.
    package var wallClockStep = Duration.zero
    private let wallClockStart = Machine.wallClockMilliseconds()

    private var timeline = Timeline()
    var chance: SimulatedChance
    var listeners = ListenerTable()
    private var systems: [WeakSystem] = []
    private var lastNumber = 0
    private var processes: UInt32 = 0
    private var lastClientPort: UInt16 = 32_767
    private var lastListenPort: UInt16 = 9_999

    /// - Parameter traceLength: most steps that `trace` keeps in words.
    package init(seed: UInt64, faults: FaultPlan = .calm, traceLength: Int = 200) {
        self.seed = seed
        self.faults = faults
        self.chance = SimulatedChance(seed: seed)
        self.trace = SimulationTrace(seed: seed, capacity: traceLength)
    }

    package var now: MonotonicInstant {
        self.timeline.now
    }

    /// Milliseconds since 1970-01-01T00:00:00Z: advances with virtual time, starting at that of the machine.
    var wallClockMilliseconds: Int64 {
        let passed = Timeline.start.duration(to: self.now) + self.wallClockStep
        return self.wallClockStart + Int64(passed / .milliseconds(1))
    }

    /// A new process with one loop's view of the system. Further loops of the same process:
    /// `SimulatedProcess.makeSystem`.
    package func makeSystem() -> SimulatedSystem {
        self.processes += 1
        return self.makeSystem(in: SimulatedProcess(on: self, address: 0x0a00_0000 | self.processes))
    }

    func makeSystem(in process: SimulatedProcess) -> SimulatedSystem {
        let system = SimulatedSystem(in: process)
        self.systems.removeAll { $0.system == nil }
        self.systems.append(WeakSystem(system: system))
        return system
    }

    func stopLoops(of process: SimulatedProcess) {
        for system in self.systems where system.system?.process === process { system.system?.stop() }
    }

    /// Permission bits of the file of a Unix socket; `nil` when there is none.
    package func mode(ofSocketAt path: String) -> UInt32? {
        self.listeners.mode(ofFileAt: path)
    }

    func nextNumber() -> Int {
        self.lastNumber += 1
        return self.lastNumber
    }

    private func nextClientPort() -> UInt16 {
        self.lastClientPort = self.lastClientPort >= 60_999 ? 32_768 : self.lastClientPort + 1
        return self.lastClientPort
    }

    /// - Returns: a port without a listener; `nil` when all are taken.
    private func nextListenPort() -> UInt16? {
        for _ in 0..<20_000 {
            self.lastListenPort = self.lastListenPort >= 29_999 ? 10_000 : self.lastListenPort + 1
            if self.listeners.isFree(self.lastListenPort) { return self.lastListenPort }
        }
        return nil
    }

    // MARK: Time and trace

    func plan(at due: MonotonicInstant, _ action: @escaping () -> Void) {
        self.timeline.plan(at: due, patiently: false, action)
    }

    func plan(after delay: Duration, _ action: @escaping () -> Void) {
        self.plan(at: self.now.advanced(by: delay), action)
    }

    /// For kernel timeouts, which may still be pending when nothing else happens on the network.
    func planPatiently(at due: MonotonicInstant, _ action: @escaping () -> Void) {
        self.timeline.plan(at: due, patiently: true, action)
    }

    func note(_ step: SimulationStep, _ subject: Int, _ amount: Int) {
        self.trace.record(step, at: self.now, subject, amount)
    }

    func misuse(_ text: String) {
        self.misuses.append(text)
    }
}

/// Letting time pass.
extension SimulatedNetwork {
    /// Turns that loops may take at one instant before they count as spinning.
    private static let turnsPerInstant = 20_000

    /// Runs for exactly `duration` of virtual time, through idle stretches too.
    /// - Returns: `.timeOver`, `.spinning` or `.stepsUsedUp`.
    @discardableResult
    package func run(for duration: Duration) -> RunOutcome {
        let end = self.now.advanced(by: duration)
        let outcome = self.advance(to: end, by: { $0.nextInstant }, until: { false })
        guard outcome == .idle else { return outcome }
        self.timeline.now = max(self.now, end)
        return .timeOver
    }

    /// Runs until `condition` holds, which is checked before the first step and after each.
    @discardableResult
    package func run(until condition: () -> Bool, atMost limit: Duration = .seconds(60)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextInstant }, until: condition)
    }

    /// Runs until nothing is in flight and no loop waits for a deadline.
    @discardableResult
    package func runUntilIdle(atMost limit: Duration = .seconds(3600)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextInstant }, until: { false })
    }

    /// Runs until everything in flight has arrived and the loops have handled it, without waiting for timeouts.
    @discardableResult
    package func settle(atMost limit: Duration = .seconds(60)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextTrafficInstant }, until: { false })
    }

    private func advance(
        to end: MonotonicInstant, by next: (SimulatedNetwork) -> MonotonicInstant?, until condition: () -> Bool
    ) -> RunOutcome {
        // The caller may have used the loops directly since they last waited.
        for system in self.systems { system.system?.unpark() }
        var turns = 0
        var before = self.now
        while true {
            if condition() { return .conditionMet }
            // Turns cost time, so a busy loop may run over.
            guard self.now <= end else { return .timeOver }
            guard self.stepsTaken < self.stepLimit else { return .stepsUsedUp }
            self.stepsTaken += 1
            if let action = self.timeline.popDue() {
                action()
            } else if let system = self.drawRunnable() {
                turns = self.now == before ? turns + 1 : 1
                before = self.now
                guard turns <= Self.turnsPerInstant else { return .spinning }
                self.giveTurn(to: system)
            } else {
                guard let instant = next(self) else { return .idle }
                guard instant <= end else {
                    self.timeline.now = max(self.now, end)
                    return .timeOver
                }
                self.timeline.now = max(self.now, instant)
            }
        }
    }

    private func drawRunnable() -> SimulatedSystem? {
        let runnable = self.systems.compactMap { $0.system }.filter { $0.isRunnable }
        return runnable.count > 1 ? runnable.randomElement(using: &self.chance) : runnable.first
    }

    private func giveTurn(to system: SimulatedSystem) {
        self.note(.turn, system.number, 0)
        system.takeTurn()
        let cost = self.chance.duration(in: self.faults.turnCost)
        self.timeline.now = self.now.advanced(by: cost)
    }

    private var nextInstant: MonotonicInstant? {
        let deadline = self.systems.compactMap { $0.system?.parkedUntil }.min()
        guard let next = self.timeline.next else { return deadline }
        return deadline.map { min($0, next) } ?? next
    }

    /// Deadlines of loops count here only if they come before something in flight.
    private var nextTrafficInstant: MonotonicInstant? {
        guard let traffic = self.timeline.nextTraffic, let next = self.nextInstant else { return nil }
        return min(traffic, next)
    }
}

/// Establishing connections.
extension SimulatedNetwork {
    /// Repetitions of an unanswered connection request, after 1, 2, 4… s (`tcp_syn_retries`).
    private static let connectRetries = 6

    func listen(_ address: SocketAddress, options: ListenOptions) throws(SystemError) -> SimulatedListener {
        let bound = try self.bind(address)
        let listener = SimulatedListener(bound, options: options, on: self)
        try self.listeners.add(listener)
        self.note(.listening, listener.number, Int(bound.port ?? 0))
        return listener
    }

    private func bind(_ address: SocketAddress) throws(SystemError) -> SocketAddress {
        if case .unix(let path) = address, path.isEmpty || path.utf8.count > 107 { throw .nameTooLong }
        guard address.port == 0 else { return address }
        guard let port = self.nextListenPort() else { throw .addressInUse }
        return address.with(port: port)
    }

    func connect(_ address: SocketAddress, from source: UInt32) throws(SystemError) -> SimulatedStream {
        if case .unix(let path) = address { return try self.connectUnix(path) }
        let script = self.connectScripts[address] ?? self.drawConnectFault()
        if script == .noRoute { throw .networkUnreachable }
        if script == .noLocalPort { throw .addressNotAvailable }
        let remote = address.reachable
        let client = SimulatedStream(
            .tcp, local: remote.source(source).with(port: self.nextClientPort()), remote: remote, state: .connecting,
            on: self, latency: self.chance.duration(in: self.faults.latency))
        self.note(.connecting, client.number, Int(remote.port ?? 0))
        self.begin(client, script)
        return client
    }

    private func drawConnectFault() -> ConnectScript? {
        if self.chance.happens(self.faults.refusedConnect) { return .refused }
        if self.chance.happens(self.faults.hangingConnect) { return .hangs }
        if self.chance.happens(self.faults.unreachableConnect) { return .unreachable }
        return nil
    }

    private func begin(_ client: SimulatedStream, _ script: ConnectScript?) {
        let oneWay = client.latency
        switch script {
        case .refused: self.plan(after: oneWay * 2) { client.refuseConnect(.refused) }
        case .unreachable: self.plan(after: oneWay * 2) { client.refuseConnect(.hostUnreachable) }
        case .hangs: self.hang(client)
        case .delayed(let delay): self.plan(after: oneWay + delay) { self.requestArrived(client, retry: 0) }
        case .noRoute, .noLocalPort, nil: self.plan(after: oneWay) { self.requestArrived(client, retry: 0) }
        }
    }

    private func hang(_ client: SimulatedStream) {
        self.note(.connectHangs, client.number, 0)
        self.planPatiently(at: self.now.advanced(by: .seconds(127))) { client.refuseConnect(.timedOut) }
    }

    /// A connection request reached the address: it is queued for the listener, or reset without one, or dropped if the
    /// queue is full.
    private func requestArrived(_ client: SimulatedStream, retry: Int) {
        guard client.state == .connecting else { return }
        let candidates = self.listeners.listeners(for: client.remoteAddress)
        let chosen = candidates.count > 1 ? candidates.randomElement(using: &self.chance) : candidates.first
        guard let listener = chosen else {
            return self.plan(after: client.latency) { client.refuseConnect(.refused) }
        }
        guard !listener.isFull else {
            self.note(.queueFull, listener.number, retry)
            guard retry < Self.connectRetries else { return client.refuseConnect(.timedOut) }
            return self.planPatiently(at: self.now.advanced(by: .seconds(1 << retry))) {
                self.requestArrived(client, retry: retry + 1)
            }
        }
        listener.promise()
        self.plan(after: client.latency) { self.answerArrived(client, listener) }
    }

    /// The listener's answer is back: the client is connected, and its confirmation puts the other end into the queue.
    private func answerArrived(_ client: SimulatedStream, _ listener: SimulatedListener) {
        guard client.state == .connecting else { return listener.withdrawPromise() }
        let server = SimulatedStream(
            .tcp, local: client.remoteAddress, remote: client.localAddress, state: .established, on: self,
            latency: client.latency)
        client.join(server)
        client.state = .established
        self.drawReset(client, server)
        self.note(.established, client.number, server.number)
        client.watchers.notify()
        let confirmed = self.now.advanced(by: client.latency)
        client.lastArrival = confirmed
        self.plan(at: confirmed) {
            listener.withdrawPromise()
            guard !listener.isClosed else { return server.reset() }
            listener.enqueue(server)
        }
    }

    private func drawReset(_ client: SimulatedStream, _ server: SimulatedStream) {
        guard self.chance.happens(self.faults.reset) else { return }
        let budget = self.chance.count(in: self.faults.resetAfter)
        let end = Bool.random(using: &self.chance) ? client : server
        end.bytesUntilReset = budget
    }

    /// Unix sockets connect at once or not at all.
    private func connectUnix(_ path: String) throws(SystemError) -> SimulatedStream {
        let listener = try self.listeners.unixListener(path)
        guard !listener.isFull else { throw .wouldBlock }
        let client = SimulatedStream(
            .unix, local: .unix(path: ""), remote: listener.address, state: .established, on: self, latency: .zero)
        let server = SimulatedStream(
            .unix, local: listener.address, remote: .unix(path: ""), state: .established, on: self, latency: .zero)
        client.join(server)
        self.note(.established, client.number, server.number)
        listener.enqueue(server)
        return client
    }
}

extension SimulatedStream {
    fileprivate func join(_ other: SimulatedStream) {
        self.peer = other
        other.peer = self
    }

    fileprivate func refuseConnect(_ error: SystemError) {
        guard self.state == .connecting else { return }
        self.network.note(error == .refused ? .connectRefused : .connectFailed, self.number, Int(error.number))
        self.fail(error)
    }
}

extension SimulatedNetwork {
    /// - Returns: the answer and when it comes; `nil` when none ever will.
    func lookUp(_ host: String, port: UInt16) -> (Result<[SocketAddress], ResolutionFailure>, Duration)? {
        if let literal = SocketAddress(literal: host, port: port) { return (.success([literal]), .zero) }
        if self.chance.happens(self.faults.lookupFailure) {
            return (.failure(.temporarilyUnavailable), self.drawLookupDelay())
        }
        switch self.names[host] {
        case .addresses(let addresses, let delay): return (.success(addresses.map { $0.with(port: port) }), delay)
        case .failure(let failure, let delay): return (.failure(failure), delay)
        case .silence: return nil
        case nil: return (.failure(.nameNotFound), self.drawLookupDelay())
        }
    }

    private func drawLookupDelay() -> Duration {
        self.chance.duration(in: self.faults.lookupDelay)
    }
}

/// Result of a simulated lookup.
package enum NameScript: Hashable, Sendable {
    /// These addresses, in this order, with the requested port.
    case addresses([SocketAddress], after: Duration = .milliseconds(1))
    case failure(ResolutionFailure, after: Duration = .milliseconds(1))
    /// No answer ever comes.
    case silence
}

/// Result of a connection attempt to an address, before any listener is asked.
package enum ConnectScript: Hashable, Sendable {
    /// Takes this much longer than the network's latency, then proceeds normally.
    case delayed(Duration)
    /// Is reset, even if there is a listener.
    case refused
    /// Nothing ever comes back; the kernel gives up after 127 s (`ETIMEDOUT`).
    case hangs
    /// A router says that there is no way (`EHOSTUNREACH`), after a round trip.
    case unreachable
    /// The kernel itself has no route (`ENETUNREACH`): `connect` fails at once.
    case noRoute
    /// The kernel has no local port left for it (`EADDRNOTAVAIL`): `connect` fails at once.
    case noLocalPort
}

/// Why a run of the simulation came back.
package enum RunOutcome: Hashable, Sendable {
    /// The awaited condition holds.
    case conditionMet
    /// Nothing is in flight and no loop waits for a deadline: without an outside event nothing will ever happen.
    case idle
    /// The time given is over.
    case timeOver
    /// A loop takes turn after turn without letting time pass: an event that it never acts on.
    case spinning
    /// The network's limit of steps is reached: something runs forever.
    case stepsUsedUp
}
