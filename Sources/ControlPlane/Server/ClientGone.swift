import NIOCore
import Synchronization

/// The moment in which a client goes away, to be waited for by one at a time; the wait can be cancelled.
final class ClientGone: Sendable {
    private struct State {
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    init(_ future: EventLoopFuture<Void>) {
        future.whenComplete { [weak self] _ in self?.finish() }
    }

    /// - Returns: whether the client is gone; `false` when the wait was cancelled.
    @discardableResult
    func wait() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = state.isOver || Task.isCancelled
                    if !isDone { state.waiting = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.take() }?.resume()
        }
        return self.state.withLock { $0.isOver }
    }

    private func finish() {
        let waiting = self.state.withLock { state in
            state.isOver = true
            return state.waiting.take()
        }
        waiting?.resume()
    }
}
