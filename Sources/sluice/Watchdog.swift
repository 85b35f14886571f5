import StreamTransport

/// The watchdog of the service manager (sd_watchdog_enabled(3)).
enum Watchdog {
    /// However often the service manager wants to hear something: not more often than this.
    private static let shortestPause = Duration.milliseconds(10)

    /// Says again and again, twice as often as it must, that every loop still takes its turns. With a loop that is stuck
    /// it waits, nothing is said any more, and the service manager starts the process anew. Until cancelled; does nothing
    /// where nobody wants to hear it.
    static func feed(_ loops: [Loop]) async {
        guard let limit = ServiceSupervisor.watchdogLimit else { return }
        while !Task.isCancelled {
            for loop in loops {
                await withCheckedContinuation { answer in loop.execute { answer.resume() } }
            }
            ServiceSupervisor.notify("WATCHDOG=1")
            try? await Task.sleep(for: max(limit / 2, Self.shortestPause))
        }
    }
}
