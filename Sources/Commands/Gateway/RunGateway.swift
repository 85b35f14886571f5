import ArgumentParser
import ControlPlane
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization

/// Runs the gateway until it is stopped.
///
/// Prints one line for each listener (`listening on URL`) and then `ready`, unless it is quiet. SIGTERM and SIGINT
/// drain, a second one ends at once; SIGHUP reads the configuration's file again.
/// - Throws: `StartFailure` if it does not start.
func runGateway(_ located: LocatedConfiguration, source: ConfigurationSource) async throws {
    // Not sooner: until the configuration is read, a signal just ends the process.
    do throws(SystemError) {
        try GatewaySignals.hold()
    } catch {
        throw StartFailure.refusedBySystem("\(error)")
    }
    ProcessOutput.isPatient = false
    Machine.returnLargeBlocks()
    let descriptors = DescriptorReserve.process.raiseLimit()
    var configuration = located.configuration
    source.adjust(&configuration)
    let log = TunnelLog(configuration.log)
    let events = ServiceEvents()
    let up: GatewayStart
    do {
        up = try await GatewayStart(located, configuration, source: source, log: log) { events.add($0) }
    } catch let error as SystemError {
        throw StartFailure.refusedBySystem("\(error)")
    } catch let error as GatewayPlanError {
        throw StartFailure.refusedBySystem("\(error)")
    }
    note(descriptors, for: configuration, log: log)
    let watchdog = Watchdog(log: log)
    watchdog.tell("READY=1\nSTATUS=serving")
    up.control?.phase = .ready
    let feeding = watchdog.start(up.group.loops)
    defer { feeding?.cancel() }
    let service = Service(
        gateway: up.gateway, configuration: up.running, source: source, log: log, control: up.control,
        watchdog: watchdog, events: events)
    await service.live()
    await up.control?.stop()
    log.flush()
    up.group.stop()
}

private func note(_ limits: (before: Int, now: Int), for configuration: GatewayConfiguration, log: TunnelLog) {
    let before = limits.before == limits.now ? "" : ", raised from \(limits.before)"
    log.log("descriptors: at most \(limits.now)\(before)", level: .info)
    if let shortage = configuration.descriptorShortage(DescriptorReserve.process.budget) {
        log.log(shortage, level: .warning)
    }
}

/// Options of a bridge about the process itself.
struct ProcessOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Form of log lines: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp(
            "Least severe entry to log: trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"))
    var logLevel: String?

    @Flag(help: "Print nothing on standard output, and log errors only unless --log-level says otherwise.")
    var quiet = false

    @Flag(
        help: "End with exit code 69 unless the target can be reached at start, TLS and opening handshake included.")
    var requireTarget = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options((.logFormat, [self.logFormat]), (.logLevel, [self.logLevel]))
            + (self.quiet ? [BridgeRequest.Option(.quiet)] : [])
    }
}

/// The signals that steer the process, as a sequence of wishes.
struct ProcessSignals {
    enum Wish: Sendable {
        case stop
        case reload

        init(_ signal: Int32) {
            self = signal == SIGHUP ? .reload : .stop
        }
    }

    /// Exit code of an end that does not wait for anything: interrupted.
    static let interrupted: Int32 = 130
    /// More than two say nothing new.
    private static let kept = 2

    let wishes: AsyncStream<Wish>

    /// From here on these signals no longer end the process by themselves. It ends all the same, with `interrupted`: one
    /// second after a second signal, at a third, and when `patience` is over after the first.
    /// - Parameter patience: `nil` leaves it to a second signal.
    init(patience: Duration?) throws(StartFailure) {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        let (wishes, heard) = AsyncStream.makeStream(of: Wish.self, bufferingPolicy: .bufferingOldest(Self.kept))
        self.wishes = wishes
        do throws(SystemError) {
            SignalWatch.set(patience: patience)
            try SignalWatch.take(
                ending: [SIGTERM, SIGINT, SIGHUP], others: [], exitCode: Self.interrupted)
            try SignalWatch.hear { heard.yield(Wish($0)) }
        } catch {
            throw StartFailure.refusedBySystem("\(error)")
        }
    }
}

/// The process's main thread as a task executor, lent to a gateway's first loop as soon as there is one.
///
/// A gateway of one loop then has no other thread, and in a process with one thread system calls cost less. Long work
/// must not run here then: the loop would stand still.
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

    /// Lends the thread to `loop` until that is stopped, as soon as what runs on it now waits for something.
    func lend(to loop: Loop) {
        self.perform {
            loop.run()
            self.state.withLock { $0.loop = nil }
            // One turn more for what it was given meanwhile, which must not wait for anything.
            loop.execute {}
            loop.turn()
        }
        self.state.withLock { $0.loop = loop }
    }

    /// Called once, by the thread itself.
    func serve() -> Never {
        while true {
            self.wake.wait()
            let body = self.state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
            body?()
        }
    }
}
