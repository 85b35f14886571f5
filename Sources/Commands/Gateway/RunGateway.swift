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
/// - Throws: `StartFailure` if it does not start.
func runGateway(_ located: LocatedConfiguration, source: ConfigurationSource) async throws {
    // Not earlier: while the configuration is read, a signal ends the process by default.
    do throws(SystemError) {
        try GatewaySignals.block()
    } catch {
        throw StartFailure.system("\(error)")
    }
    ProcessOutput.isBlocking = false
    Machine.returnLargeBlocks()
    let descriptors = DescriptorReserve.process.raiseLimit()
    var configuration = located.configuration
    source.adjust(&configuration)
    let log = TunnelLog(configuration.log)
    let events = ServiceEvents()
    let startup: GatewayStart
    do {
        startup = try await GatewayStart(located, configuration, source: source, log: log) { events.add($0) }
    } catch let error as SystemError {
        throw StartFailure.system("\(error)")
    } catch let error as GatewayPlanError {
        throw StartFailure.system("\(error)")
    }
    logDescriptorLimit(descriptors, for: configuration, log: log)
    let watchdog = Watchdog(log: log)
    watchdog.notify("READY=1\nSTATUS=serving")
    startup.control?.phase = .ready
    let watchdogTask = watchdog.start(startup.group.loops)
    defer { watchdogTask?.cancel() }
    let service = Service(
        gateway: startup.gateway, configuration: startup.running, source: source, log: log, control: startup.control,
        watchdog: watchdog, events: events)
    await service.run()
    await startup.control?.stop()
    log.flush()
    startup.group.stop()
}

private func logDescriptorLimit(_ limits: (before: Int, now: Int), for configuration: GatewayConfiguration, log: TunnelLog) {
    let before = limits.before == limits.now ? "" : ", raised from \(limits.before)"
    log.log("descriptors: at most \(limits.now)\(before)", level: .info)
    if let shortage = configuration.descriptorShortage(DescriptorReserve.process.budget) {
        log.log(shortage, level: .warning)
    }
}

/// Process options of a bridge.
struct ProcessOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Log format: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp(
            "Minimum log level: trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"))
    var logLevel: String?

    @Flag(help: "Print nothing on standard output, and log errors only unless --log-level is given.")
    var quiet = false

    @Flag(
        help: "Exit with 69 unless the target can be reached at start, including TLS and opening handshake.")
    var requireTarget = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options((.logFormat, [self.logFormat]), (.logLevel, [self.logLevel]))
            + (self.quiet ? [BridgeRequest.Option(.quiet)] : [])
    }
}

/// Signals that stop or reload the process, as an asynchronous sequence.
struct ProcessSignals {
    enum Event: Sendable {
        case stop
        case reload

        init(_ signal: Int32) {
            self = signal == SIGHUP ? .reload : .stop
        }
    }

    /// Exit code after an immediate exit by signal.
    static let interrupted: Int32 = 130
    /// A third signal exits the process anyway.
    private static let bufferLimit = 2

    let events: AsyncStream<Event>

    /// Takes over SIGTERM, SIGINT and SIGHUP. The process still exits with `interrupted` one second after a second signal,
    /// at a third signal, and when `patience` has passed after the first.
    /// - Parameter patience: `nil` waits for a second signal.
    init(patience: Duration?) throws(StartFailure) {
        // Writing to a closed pipe must not end the process.
        signal(SIGPIPE, SIG_IGN)
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.bufferLimit))
        self.events = events
        do throws(SystemError) {
            SignalWatch.set(patience: patience)
            try SignalWatch.take(
                ending: [SIGTERM, SIGINT, SIGHUP], others: [], exitCode: Self.interrupted)
            try SignalWatch.hear { continuation.yield(Event($0)) }
        } catch {
            throw StartFailure.system("\(error)")
        }
    }
}

/// The process's main thread as a task executor, lent to a gateway's first loop once it is started.
///
/// A gateway with one loop then has no other thread, and system calls cost less in a process with one thread. Blocking
/// work must not run here, because it would block the loop.
final class MainThread: TaskExecutor, Sendable {
    static let shared = MainThread()

    private struct State {
        var loop: Loop?
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)

    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.perform { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    private func perform(_ body: @escaping @Sendable () -> Void) {
        let loop = self.state.withLock { state in
            if state.loop == nil { state.waiting.append(body) }
            return state.loop
        }
        guard let loop else {
            self.wake.signal()
            return
        }
        loop.execute(body)
    }

    /// Runs `loop` on this thread until the loop is stopped, as soon as the current job suspends.
    func lend(to loop: Loop) {
        self.perform {
            loop.run()
            self.state.withLock { $0.loop = nil }
            // One more turn for jobs that were enqueued on the loop meanwhile; they must not block.
            loop.execute {}
            loop.turn()
        }
        self.state.withLock { $0.loop = loop }
    }

    /// Runs jobs on the calling thread. Called once, by the main thread.
    func serve() -> Never {
        while true {
            self.wake.wait()
            let body = self.state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
            body?()
        }
    }
}
