import Synchronization

/// Answers a waiting caller once, whoever comes first.
final class CallBox: Sendable {
    private let waiting: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.waiting = Mutex(continuation)
    }

    func answer(_ value: Bool) {
        self.waiting.withLock { $0.take() }?.resume(returning: value)
    }
}
