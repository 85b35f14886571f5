import Synchronization

/// What went wrong first, from wherever it is noticed.
final class ConnectOutcome: Sendable {
    private let first = Mutex<ConnectFailure?>(nil)

    var failure: ConnectFailure? { self.first.withLock { $0 } }

    func note(_ failure: ConnectFailure) {
        self.first.withLock { $0 = $0 ?? failure }
    }
}
