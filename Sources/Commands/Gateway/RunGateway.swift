import ArgumentParser
import ControlPlane
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization

/// Runs the gateway until it is stopped.
///
/// Unless it is quiet, prints `listening on URL` for each listener and then `ready`. SIGTERM and SIGINT drain, a second
/// one exits at once; SIGHUP reloads the configuration file.
/// - Throws: `SystemError`, `GatewayPlanError` or `UnreachableTarget` if it does not start.
func runGateway(_ located: LocatedConfiguration, source: ConfigurationSource) async throws {
    var configuration = located.configuration
    source.adjust(&configuration)
    if let host = HostProcess.current { return await host.gateway(configuration) }
    // Not earlier: while the configuration is read, a signal ends the process by default.
    try GatewaySignals.block()
    ProcessOutput.isBlocking = false
    Machine.returnLargeBlocks()
    try ThreadShortage.check(ThreadShortage.gatewayCount(loops: configuration.loops ?? Machine.cores))
    let descriptors = DescriptorReserve.process.raiseLimit()
    guard DescriptorReserve.process.canOpen(DescriptorBudget.ownCount) else {
        throw SystemError.processDescriptorsExhausted
    }
    let log = TunnelLog(configuration.log)
    let events = ServiceEvents()
    let startup = try await GatewayStart(located, configuration, source: source, log: log) { events.add($0) }
    logDescriptorLimit(descriptors, for: configuration, log: log)
    let watchdog = Watchdog(log: log)
    watchdog.notify("READY=1\nSTATUS=serving")
    startup.control?.phase = .ready
    let watchdogTask = watchdog.start(startup.group.loops)
    defer { watchdogTask?.cancel() }
    startup.gateway.startCertificateReminder()
    let service = Service(
        gateway: startup.gateway, configuration: startup.running, source: source, log: log, control: startup.control,
        watchdog: watchdog, events: events)
    await service.run()
    await startup.control?.stop()
    await startup.gateway.leaveCluster()
    startup.tokenKeys.stop()
    log.flush()
    startup.group.stop()
}

private func logDescriptorLimit(
    _ limits: (before: Int, now: Int), for configuration: Configuration, log: TunnelLog
) {
    let before = limits.before == limits.now ? "" : ", raised from \(limits.before)"
    log.log("descriptors: at most \(limits.now)\(before)", level: .info)
    if let shortage = configuration.descriptorShortage(DescriptorReserve.process.budget) {
        log.log(shortage, level: .warning)
    }
}

/// Handles signals of a running gateway: reloads, drain and exit.
private struct Service {
    /// How long a stop waits for a running reload, which may block on a file.
    private static let reloadTimeout = Duration.seconds(3)

    let gateway: Gateway
    let configuration: RunningConfiguration
    let source: ConfigurationSource
    let log: TunnelLog
    let control: ControlServer?
    let watchdog: Watchdog
    let events: ServiceEvents

    private struct State {
        var isReloading = false
        /// Another reload was requested during a reload.
        var reloadsAgain = false
        var isStopping = false
        var isDraining = false
    }

    /// Returns when the gateway has drained, or at a second signal.
    func run() async {
        GatewaySignals.setDeadline(drain: self.gateway.drainTimeout)
        var state = State()
        for await _ in self.events.changes {
            while let event = self.events.take() {
                guard await self.handle(event, &state) else { return }
            }
        }
    }

    /// - Returns: whether the service continues.
    private func handle(_ event: ServiceEvents.Event, _ state: inout State) async -> Bool {
        switch event {
        case .reload:
            self.beginReload(&state)
        case .reloaded:
            state.isReloading = false
            if state.isStopping { self.beginDrain(&state) } else { self.endReload(&state) }
        case .stop where state.isStopping:
            // A second signal aborts the drain.
            await self.gateway.abandon()
            return false
        case .stop:
            state.isStopping = true
            self.watchdog.notify("STOPPING=1\nSTATUS=draining")
            self.log.log(self.gateway.drainDescription)
            self.control?.phase = .draining
            if state.isReloading {
                self.add(.reloadTooSlow, after: Self.reloadTimeout)
            } else {
                self.beginDrain(&state)
            }
        case .reloadTooSlow:
            self.beginDrain(&state)
        case .drained:
            return false
        }
        return true
    }

    private func add(_ event: ServiceEvents.Event, after pause: Duration) {
        Task {
            try? await Task.sleep(for: pause)
            self.events.add(event)
        }
    }

    private func beginDrain(_ state: inout State) {
        guard !state.isDraining else { return }
        state.isDraining = true
        Task {
            await self.gateway.drain()
            self.events.add(.drained)
        }
    }

    // MARK: Reloading

    private func beginReload(_ state: inout State) {
        guard !state.isStopping else { return self.log.log("not reloaded: the gateway is stopping", level: .warning) }
        guard !state.isReloading else {
            state.reloadsAgain = true
            return
        }
        state.isReloading = true
        // Off the first loop's thread: reading and checking files blocks.
        Task.detached {
            await self.reload()
            self.events.add(.reloaded)
        }
    }

    private func endReload(_ state: inout State) {
        GatewaySignals.setDeadline(drain: self.gateway.drainTimeout)
        self.watchdog.notify("READY=1")
        guard state.reloadsAgain else { return }
        state.reloadsAgain = false
        self.beginReload(&state)
    }

    /// Reloads the file. If it has problems, the current configuration stays in use.
    private func reload() async {
        guard case .file(let path, _) = self.source else {
            return self.log.log("nothing to reload: running without a configuration file")
        }
        self.watchdog.notify(ServiceSupervisor.reloading)
        switch await self.configuration.reload() {
        case .success: self.log.log("reloaded \(path)")
        case .failure(let refusal):
            self.log.log("not reloaded, still running with the previous configuration: \(refusal)", level: .error)
        }
    }
}

/// Queue of events that the service has to handle.
///
/// Bounded: at most two stops and one of each other event are queued; further ones are dropped. Callable from any thread.
private final class ServiceEvents: Sendable {
    enum Event {
        case reload
        case reloaded
        case stop
        /// `reloadTimeout` has passed since the stop.
        case reloadTooSlow
        /// The drain is complete.
        case drained
    }

    private let waiting = Mutex<[Event]>([])
    private let added: AsyncStream<Void>.Continuation
    /// Yields an element whenever events may be queued.
    let changes: AsyncStream<Void>

    init() {
        (self.changes, self.added) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func add(_ event: Event) {
        self.waiting.withLock { waiting in
            let limit = event == .stop ? 2 : 1
            if waiting.count(where: { $0 == event }) < limit { waiting.append(event) }
        }
        self.added.yield()
    }

    func add(_ signal: ProcessSignals.Event) {
        self.add(signal == .reload ? Event.reload : Event.stop)
    }

    /// - Returns: the next event; stops precede all others.
    func take() -> Event? {
        self.waiting.withLock { waiting in
            guard let place = waiting.firstIndex(of: .stop) ?? waiting.indices.first else { return nil }
            return waiting.remove(at: place)
        }
    }
}

/// Starts the parts of a gateway.
private struct GatewayStart {
    let group: LoopGroup
    let gateway: Gateway
    let running: RunningConfiguration
    let control: ControlServer?
    let tokenKeys: TokenKeyFetcher

    /// Starts loops, listeners and the control plane, and prints their addresses unless the source is quiet.
    /// - Parameters:
    ///   - configuration: that of `located` with the command line's overrides.
    ///   - handler: called with each signal, on the first loop.
    /// - Throws: `SystemError`, `GatewayPlanError`, or `UnreachableTarget` for a required target.
    init(
        _ located: LocatedConfiguration, _ configuration: Configuration, source: ConfigurationSource,
        log: TunnelLog,
        _ handler: @escaping @Sendable (ProcessSignals.Event) -> Void
    ) async throws {
        let passed = ServiceSupervisor.takeListeningDescriptors().map {
            ActivatedSocket(name: $0.name, descriptor: $0.descriptor)
        }
        self.group = try LoopGroup(count: configuration.loops ?? Machine.cores, lend: MainThread.shared.lend)
        let loops = self.group.loops
        try await GatewaySignals.observe(on: loops[0], handler)
        self.gateway = try Gateway(
            loops: loops, log: log, configuration: configuration, passedSockets: passed, version: Version.text)
        let plan = try GatewayPlan(configuration, log: log)
        if source.requiresTarget {
            for route in plan.routes {
                let reasons = await ReachabilityCheck.reasons(route, on: loops[0])
                guard reasons.isEmpty else { throw UnreachableTarget(reasons: reasons) }
            }
        }
        let tokenKeys = TokenKeyFetcher(log: log)
        self.tokenKeys = tokenKeys
        await tokenKeys.follow(plan.tokenSources)
        self.gateway.observeTokenSources { sources in
            Task { await tokenKeys.follow(sources) }
        }
        let bound = try await self.gateway.start(plan)
        self.running = RunningConfiguration(
            located, gateway: self.gateway, settings: ConfigurationFile.reloadSettings(of: source))
        let (server, address) = try await Self.startControl(
            configuration.control, gateway: self.gateway, configuration: self.running, log: log)
        self.control = server
        if !source.isQuiet { Announcement.print(bound, configuration, source: source, control: address) }
    }

    /// Starts the configured control plane.
    /// - Throws: `GatewayPlanError` if a configured address cannot be bound; without the default address, the gateway
    ///   starts without a control plane.
    private static func startControl(
        _ settings: ControlSettings, gateway: Gateway, configuration: RunningConfiguration, log: TunnelLog
    ) async throws(GatewayPlanError) -> (ControlServer?, String?) {
        guard settings.address != nil else { return (nil, nil) }
        let server = try ControlServer(
            settings, gateway: gateway, configuration: configuration, log: log, version: Version.text)
        if !settings.isLocal, settings.tls == nil {
            log.log("control plane without TLS: tokens are sent in plaintext", level: .warning)
        }
        do throws(GatewayPlanError) {
            return (server, try await server.start())
        } catch {
            await server.stop()
            guard !settings.isExplicit else { throw error }
            log.log(
                "running without a control plane: \(error.summary); set control.address to another address",
                level: .warning)
            return (nil, nil)
        }
    }
}

/// Signals of a gateway, delivered on one of its loops. The final exit by a signal's deadline does not depend on a loop.
private enum GatewaySignals {
    /// Time from a signal until the process exits at the latest, while the gateway starts.
    private static let startPatience = Duration.seconds(5)
    /// Additional time after the drain for the control plane's last responses, transfers, and the log.
    private static let grace = Duration.seconds(15)

    /// Takes over the signals, which are pending until `observe`. Must be called before any thread is started.
    /// - Throws: `SystemError` if no descriptors are available.
    static func block() throws(SystemError) {
        // Writing to a closed pipe, or beyond the limit of a file's size, must not end the process, nor must signals for
        // which other servers open their logs again.
        for number in [SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        SignalSource.setExitTimeout(self.startPatience)
        try SignalSource.install(ending: [SIGTERM, SIGINT], others: [SIGHUP], exitCode: 0)
    }

    /// Sets the exit deadline after a signal to the drain timeout plus `grace`.
    static func setDeadline(drain timeout: Duration) {
        SignalSource.setExitTimeout(timeout + self.grace)
    }

    /// Calls `handler` on `loop` for each signal, including pending ones.
    static func observe(
        on loop: Loop, _ handler: @escaping @Sendable (ProcessSignals.Event) -> Void
    ) async throws(SystemError) {
        let error: SystemError? = await withCheckedContinuation { answer in
            loop.execute {
                do throws(SystemError) {
                    _ = try SignalSource(on: loop) { handler(ProcessSignals.Event($0)) }
                    answer.resume(returning: nil)
                } catch {
                    answer.resume(returning: error)
                }
            }
        }
        if let error { throw error }
    }
}

/// A command that runs a gateway until a signal ends it.
protocol GatewayCommand: AsyncParsableCommand {}

/// Output of the gateway once it is ready.
private enum Announcement {
    static func print(
        _ bound: [Gateway.BoundListener], _ configuration: Configuration, source: ConfigurationSource, control: String?
    ) {
        var lines = bound.map { "listening on \(Self.url($0, configuration))" }
        lines += bound.compactMap { Self.pages($0, configuration).map { "pages on \($0)" } }
        if let control { lines.append("control on \(control)") }
        if case .builtIn = source, let web = bound.first { lines += Self.firstSteps(web) }
        lines.append("ready")
        // In one write, so that readers never see a partial line.
        ProcessOutput.announce(lines.joined(separator: "\n") + "\n")
    }

    /// URL of a listener. Includes the path if the listener serves only one, so that the URL can be used directly.
    private static func url(_ bound: Gateway.BoundListener, _ configuration: Configuration) -> String {
        let kind = bound.listener.kind
        let routes = configuration.routes.filter { configuration.serves($0, on: bound.listener) }
        let paths = routes.filter { !$0.target.answersHTTP }.compactMap(\.path)
        let path = paths.count == 1 && paths[0].parameters.isEmpty ? "\(paths[0])" : "/"
        switch bound.address {
        case .unix(let path): return kind == .unix ? "unix://\(path)" : "\(kind.rawValue)+unix://\(path)"
        case .ipv4, .ipv6: return "\(kind.rawValue)://\(bound.address)" + (kind.speaksWebSocket ? path : "")
        }
    }

    /// URL for browsers of a listener that answers plain HTTP, with the path of its first such route.
    private static func pages(_ bound: Gateway.BoundListener, _ configuration: Configuration) -> String? {
        let routes = configuration.routes.filter { configuration.serves($0, on: bound.listener) }
        guard let path = routes.first(where: \.target.hasPages)?.path, path.parameters.count <= 1 else { return nil }
        let scheme = bound.listener.kind.speaksTLS ? "https" : "http"
        switch bound.address {
        case .unix: return nil
        case .ipv4, .ipv6: return "\(scheme)://\(bound.address)\(path)".split(separator: "{").first.map(String.init)
        }
    }

    /// Example commands for the built-in configuration.
    private static func firstSteps(_ web: Gateway.BoundListener) -> [String] {
        let program = ProgramArguments().all.first ?? "sluice"
        return [
            "",
            "open http://\(web.address)/ in a browser, or try, each in a separate terminal:",
            "  \(program) bridge tcp://127.0.0.1:7000 ws://\(web.address)/echo",
            "      a TCP port for /echo: the gateway returns what you send to port 7000",
            "  \(program) connect ws://\(web.address)/echo",
            "      a WebSocket client: the gateway returns each line that you type",
            "  \(program) connect ws://\(web.address)/chat/lobby",
            "      a chat room: open it in two terminals, and each receives the lines of the other",
            "",
        ]
    }
}

/// Reports the state of the process and that it is alive to the service manager (sd_watchdog_enabled(3)).
///
/// Never blocks. A notification that cannot be sent is retried with the next watchdog report, or after `retryPause`
/// without a watchdog.
private struct Watchdog: Sendable {
    /// Minimum interval between two messages, whatever the service manager requests.
    private static let shortestPause = Duration.milliseconds(10)
    private static let retryPause = Duration.seconds(1)

    private let notifier: ServiceNotifier

    init(log: TunnelLog) {
        self.notifier = ServiceNotifier(complain: { error in
            log.log("cannot notify the service manager: \(error)", level: .warning)
        })
    }

    /// Reports a state, like `STOPPING=1`.
    func notify(_ state: String) {
        guard !self.notifier.tell(state), ServiceSupervisor.watchdogLimit == nil else { return }
        Task { await self.retry() }
    }

    private func retry() async {
        repeat { try? await Task.sleep(for: Self.retryPause) } while !self.notifier.retry() && !Task.isCancelled
    }

    /// Reports, twice as often as necessary, that every loop still takes its turns. If a loop is stuck, the reports
    /// stop, and the service manager restarts the process.
    /// - Returns: the reporting task; `nil` if the service manager requests no reports.
    func start(_ loops: [Loop]) -> Task<Void, Never>? {
        ServiceSupervisor.watchdogLimit.map { limit in Task { await self.report(loops, within: limit) } }
    }

    private func report(_ loops: [Loop], within limit: Duration) async {
        while !Task.isCancelled {
            for loop in loops {
                await withCheckedContinuation { answer in loop.execute { answer.resume() } }
            }
            self.notifier.notifyWatchdog()
            try? await Task.sleep(for: max(limit / 2, Self.shortestPause))
        }
    }
}

/// `--require-target` was given, and no endpoint of an upstream can be reached.
struct UnreachableTarget: Error, CustomStringConvertible {
    /// One for each endpoint.
    let reasons: [String]

    var description: String { "the target cannot be reached: \(self.reasons.joined(separator: "; "))" }
}
