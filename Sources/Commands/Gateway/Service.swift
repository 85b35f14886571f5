import ArgumentParser
import ControlPlane
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization

/// The process's life after it came up: reloads and the end.
struct Service {
    /// So long a stop waits for a reload under way, which may hang on a file.
    private static let reloadPatience = Duration.seconds(3)

    let gateway: Gateway
    let configuration: RunningConfiguration
    let source: ConfigurationSource
    let log: TunnelLog
    let control: ControlServer?
    let watchdog: Watchdog
    let events: ServiceEvents

    private struct Phase {
        var isReloading = false
        /// Another reload was requested during a reload.
        var reloadsAgain = false
        var isStopping = false
        var isDraining = false
    }

    /// Returns when the gateway has drained, or at a second signal.
    func live() async {
        GatewaySignals.allow(drain: self.gateway.drainTimeout)
        var phase = Phase()
        for await _ in self.events.changes {
            while let event = self.events.take() {
                guard await self.act(upon: event, &phase) else { return }
            }
        }
    }

    /// - Returns: whether the service continues.
    private func act(upon event: ServiceEvents.Event, _ phase: inout Phase) async -> Bool {
        switch event {
        case .reload:
            self.beginReload(&phase)
        case .reloaded:
            phase.isReloading = false
            if phase.isStopping { self.beginDrain(&phase) } else { self.endReload(&phase) }
        case .stop where phase.isStopping:
            // A second signal: no more patience.
            await self.gateway.abandon()
            return false
        case .stop:
            phase.isStopping = true
            self.watchdog.tell("STOPPING=1\nSTATUS=draining")
            self.log.log(self.gateway.drainDescription)
            self.control?.phase = .draining
            if phase.isReloading {
                self.add(.reloadTooSlow, after: Self.reloadPatience)
            } else {
                self.beginDrain(&phase)
            }
        case .reloadTooSlow:
            self.beginDrain(&phase)
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

    private func beginDrain(_ phase: inout Phase) {
        guard !phase.isDraining else { return }
        phase.isDraining = true
        Task {
            await self.gateway.drain()
            self.events.add(.drained)
        }
    }

    // MARK: Reloading

    private func beginReload(_ phase: inout Phase) {
        guard !phase.isStopping else { return }
        guard !phase.isReloading else {
            phase.reloadsAgain = true
            return
        }
        phase.isReloading = true
        // Files are read and checked meanwhile, and the first loop has work of its own.
        Task.detached {
            await self.reload()
            self.events.add(.reloaded)
        }
    }

    private func endReload(_ phase: inout Phase) {
        GatewaySignals.allow(drain: self.gateway.drainTimeout)
        self.watchdog.tell("READY=1")
        guard phase.reloadsAgain else { return }
        phase.reloadsAgain = false
        self.beginReload(&phase)
    }

    /// A file with a problem changes nothing: the service continues with its configuration.
    private func reload() async {
        guard case .file(let path, _) = self.source else {
            return self.log.log("nothing to reload: no file")
        }
        self.watchdog.tell(ServiceSupervisor.reloading)
        switch await self.configuration.reload() {
        case .success: self.log.log("reloaded \(path)")
        case .failure(let refusal):
            self.log.log("not reloaded, still running with the former configuration: \(refusal)", level: .error)
        }
    }
}

/// Events of the service that were not handled yet.
///
/// Bounded: at most one event of each kind waits, and two stops; more of a kind add nothing. Callable from any thread.
final class ServiceEvents: Sendable {
    enum Event {
        case reload
        case reloaded
        case stop
        /// A stop does not wait for the reload under way any longer.
        case reloadTooSlow
        /// Draining is over.
        case drained
    }

    private let waiting = Mutex<[Event]>([])
    private let added: AsyncStream<Void>.Continuation
    /// An element whenever there may be something to take.
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

    func add(_ wish: ProcessSignals.Wish) {
        self.add(wish == .reload ? Event.reload : Event.stop)
    }

    /// Stops first: nothing is worth putting them off.
    func take() -> Event? {
        self.waiting.withLock { waiting in
            guard let place = waiting.firstIndex(of: .stop) ?? waiting.indices.first else { return nil }
            return waiting.remove(at: place)
        }
    }
}

/// Starts the parts of a gateway.
struct GatewayStart {
    let group: LoopGroup
    let gateway: Gateway
    let running: RunningConfiguration
    let control: ControlServer?

    /// Starts loops, listeners and the control plane, and prints where they are unless it is to be quiet.
    /// - Parameters:
    ///   - configuration: what `located` holds, with what the command line has changed in it.
    ///   - heard: is called with what the signals wish, on the first loop.
    /// - Throws: `SystemError`, `GatewayPlanError`, or what a required target said.
    init(
        _ located: LocatedConfiguration, _ configuration: GatewayConfiguration, source: ConfigurationSource,
        log: TunnelLog,
        _ heard: @escaping @Sendable (ProcessSignals.Wish) -> Void
    ) async throws {
        let passed = ServiceSupervisor.takeListeningDescriptors().map {
            ActivatedSocket(name: $0.name, descriptor: $0.descriptor)
        }
        self.group = try LoopGroup(count: configuration.loops ?? Machine.cores, lend: MainThread.shared.lend)
        let loops = self.group.loops
        try await GatewaySignals.hear(on: loops[0], heard)
        self.gateway = Gateway(loops: loops, log: log, configuration: configuration, passedSockets: passed)
        let plan = try GatewayPlan(configuration)
        if source.requiresTarget { try await TargetProbe(loop: loops[0]).requireAll(of: plan) }
        let places = try await self.gateway.start(plan)
        self.running = RunningConfiguration(
            located, gateway: self.gateway, terms: ConfigurationFile.terms(of: source))
        let (server, place) = try await Self.startControl(
            configuration.control, gateway: self.gateway, configuration: self.running, log: log)
        self.control = server
        if !source.isQuiet { Announcement.print(places, configuration, source: source, control: place) }
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
            log.log("control plane without TLS: whoever is on the way can read its tokens", level: .warning)
        }
        do throws(GatewayPlanError) {
            return (server, try await server.start())
        } catch {
            await server.stop()
            guard !settings.isExplicit else { throw error }
            log.log("without a control plane: \(error.description); give control.address another one", level: .warning)
            return (nil, nil)
        }
    }
}

/// The signals that steer a gateway, heard by one of its loops. That they end the process in the end depends on no loop.
enum GatewaySignals {
    /// From the first signal to the end at the latest, while the gateway starts.
    private static let startPatience = Duration.seconds(5)
    /// Time after the drain: the control plane's last responses, the transfers' end, the log.
    private static let grace = Duration.seconds(15)

    /// From here on these signals do not end the process by themselves; they wait to be heard. Before any thread is started.
    /// - Throws: `SystemError` when there are not enough descriptors.
    static func hold() throws(SystemError) {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.set(patience: self.startPatience)
        try SignalWatch.take(ending: [SIGTERM, SIGINT], others: [SIGHUP], exitCode: 0)
    }

    /// The gateway is up: the end may take so long from the signal on.
    static func allow(drain timeout: Duration) {
        SignalWatch.set(patience: timeout + self.grace)
    }

    /// Calls `heard` on `loop` with what the signals wish, those too that came since they are held.
    static func hear(
        on loop: Loop, _ heard: @escaping @Sendable (ProcessSignals.Wish) -> Void
    ) async throws(SystemError) {
        let error: SystemError? = await withCheckedContinuation { answer in
            loop.execute {
                do throws(SystemError) {
                    _ = try SignalWatch(on: loop) { heard(ProcessSignals.Wish($0)) }
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

/// Output of the process once it is ready.
private enum Announcement {
    static func print(
        _ places: [Gateway.Place], _ configuration: GatewayConfiguration, source: ConfigurationSource, control: String?
    ) {
        var lines = places.map { "listening on \(Self.url($0, configuration))" }
        if let control { lines.append("control on \(control)") }
        if case .builtIn = source, let web = places.first { lines += Self.firstSteps(web) }
        lines.append("ready")
        // In one write, so that a reader that waits for a line never sees half of it.
        ProcessOutput.print(lines.joined(separator: "\n") + "\n")
    }

    /// Includes the path if there is only one, so that the URL can be used directly.
    private static func url(_ place: Gateway.Place, _ configuration: GatewayConfiguration) -> String {
        let kind = place.listener.kind
        let paths = configuration.routes.filter { configuration.serves($0, on: place.listener) }.compactMap(\.path)
        let path = paths.count == 1 && paths[0].parameters.isEmpty ? "\(paths[0])" : "/"
        switch place.address {
        case .unix(let path): return kind == .unix ? "unix://\(path)" : "\(kind.rawValue)+unix://\(path)"
        case .ipv4, .ipv6: return "\(kind.rawValue)://\(place.address)" + (kind.speaksWebSocket ? path : "")
        }
    }

    /// Works from the folder the process was started in, with what a machine has anyway before what must be installed.
    private static func firstSteps(_ web: Gateway.Place) -> [String] {
        let program = CommandLine.arguments.first ?? "sluice"
        return [
            "",
            "try, each in a terminal of its own:",
            "  \(program) bridge tcp://127.0.0.1:7000 ws://\(web.address)/echo",
            "      a TCP port in front of it: what you send to port 7000 comes back",
            "  \(program) connect ws://\(web.address)/echo",
            "      what you type comes back",
            "  \(program) connect ws://\(web.address)/chat/lobby",
            "      in two terminals: one hears the other",
            "",
        ]
    }
}

/// Why the gateway did not come up; thrown by `run`.
enum StartFailure: Error, CustomStringConvertible {
    /// `--require-target`, and no endpoint answered.
    case targetUnavailable(String)
    /// A listener could not be bound, or the system refused something else.
    case refusedBySystem(String)

    var description: String {
        switch self {
        case .targetUnavailable(let reason), .refusedBySystem(let reason): reason
        }
    }

    var exitCode: ExitCode {
        switch self {
        case .targetUnavailable: ExitStatus.unavailable
        case .refusedBySystem: ExitStatus.systemFault
        }
    }
}

/// Reports the state of the process and that it is alive to the service manager (sd_watchdog_enabled(3)).
///
/// Never waits for the service manager. A state that it does not accept is sent again with the next tick: the
/// watchdog's if there is one, else one of `retryPause`.
struct Watchdog: Sendable {
    /// Minimum interval between two messages, whatever the service manager requests.
    private static let shortestPause = Duration.milliseconds(10)
    private static let retryPause = Duration.seconds(1)

    private let notifier: ServiceNotifier

    init(log: TunnelLog) {
        self.notifier = ServiceNotifier(complain: { error in
            log.log("the service manager does not take notifications: \(error)", level: .warning)
        })
    }

    /// Says what the service does now, such as `STOPPING=1`.
    func tell(_ state: String) {
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
        ServiceSupervisor.watchdogLimit.map { limit in Task { await self.feed(loops, within: limit) } }
    }

    private func feed(_ loops: [Loop], within limit: Duration) async {
        while !Task.isCancelled {
            for loop in loops {
                await withCheckedContinuation { answer in loop.execute { answer.resume() } }
            }
            self.notifier.notifyWatchdog()
            try? await Task.sleep(for: max(limit / 2, Self.shortestPause))
        }
    }
}
