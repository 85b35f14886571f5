import GatewayCore
import StreamTransport

/// What the service manager hears of the process: its states, and that it is alive (sd_watchdog_enabled(3)).
///
/// Nothing here waits for the service manager. A state that it does not take is sent again with the next tick: the
/// watchdog's where there is one, else one of `retryPause`.
struct Watchdog: Sendable {
    /// However often the service manager wants to hear something: not more often than this.
    private static let shortestPause = Duration.milliseconds(10)
    private static let retryPause = Duration.seconds(1)

    private let notifier: ServiceNotifier

    init(log: TunnelLog) {
        self.notifier = ServiceNotifier(complain: { error in
            log.note("the service manager does not take notifications: \(error)", level: .warning)
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

    /// Says again and again, twice as often as it must, that every loop still takes its turns. With a loop that is stuck
    /// it waits, nothing is said any more, and the service manager starts the process anew.
    /// - Returns: what does so until it is cancelled; `nil` where nobody wants to hear it.
    func start(_ loops: [Loop]) -> Task<Void, Never>? {
        ServiceSupervisor.watchdogLimit.map { limit in Task { await self.feed(loops, within: limit) } }
    }

    private func feed(_ loops: [Loop], within limit: Duration) async {
        while !Task.isCancelled {
            for loop in loops {
                await withCheckedContinuation { answer in loop.execute { answer.resume() } }
            }
            self.notifier.feedWatchdog()
            try? await Task.sleep(for: max(limit / 2, Self.shortestPause))
        }
    }
}
