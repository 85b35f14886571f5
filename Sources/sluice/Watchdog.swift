import StreamTransport

/// The watchdog of the service manager (sd_watchdog_enabled(3)).
enum Watchdog {
    /// However often the service manager wants to hear something: not more often than this.
    private static let shortestPause = Duration.milliseconds(10)

    /// Says again and again, twice as often as it must, that every loop still takes its turns. With a loop that is stuck
    /// it waits, nothing is said any more, and the service manager starts the process anew.
    /// - Returns: what does so until it is cancelled; `nil` where nobody wants to hear it.
    static func start(_ loops: [Loop]) -> Task<Void, Never>? {
        ServiceSupervisor.watchdogLimit.map { limit in Task { await self.feed(loops, within: limit) } }
    }

    private static func feed(_ loops: [Loop], within limit: Duration) async {
        while !Task.isCancelled {
            for loop in loops {
                await withCheckedContinuation { answer in loop.execute { answer.resume() } }
            }
            ServiceSupervisor.notify("WATCHDOG=1")
            try? await Task.sleep(for: max(limit / 2, Self.shortestPause))
        }
    }
}
