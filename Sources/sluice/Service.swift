import ControlPlane
import Foundation
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
        /// A reload was asked for during a reload.
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

    /// - Returns: whether the service goes on.
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
            self.log.note(self.gateway.drainNote)
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

    /// A file with a problem changes nothing: the service goes on with what it has.
    private func reload() async {
        guard case .file(let path, _) = self.source else {
            return self.log.note("nothing to reload: no file")
        }
        self.watchdog.tell(ServiceSupervisor.reloading)
        switch await self.configuration.reload() {
        case .success: self.log.note("reloaded \(path)")
        case .failure(let refusal):
            self.log.note("not reloaded, still running with the former configuration: \(refusal)", level: .error)
        }
    }
}

/// What happened to the service and is not acted upon yet.
///
/// Bounded: an event of each kind waits once, and a stop twice; more of a kind say nothing new. Callable from any thread.
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
