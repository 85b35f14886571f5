import Synchronization

/// Since when nothing has come; nothing counts while what came is still being written out.
final class Pulse: Sendable {
    private let idleSince = Mutex<ContinuousClock.Instant?>(nil)

    func rest() {
        self.idleSince.withLock { $0 = .now }
    }

    func work() {
        self.idleSince.withLock { $0 = nil }
    }

    /// Returns when nothing has come for `duration` from now on.
    func silence(of duration: Duration) async {
        let began = ContinuousClock.now
        while !Task.isCancelled {
            let now = ContinuousClock.now
            let since = max(began, self.idleSince.withLock { $0 } ?? now)
            guard since.advanced(by: duration) > now else { return }
            try? await Task.sleep(until: since.advanced(by: duration), clock: .continuous)
        }
    }
}
