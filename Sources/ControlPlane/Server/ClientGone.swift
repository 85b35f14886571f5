import NIOCore
import Synchronization

/// The moment in which a client goes away, to be waited for; the wait can be cancelled.
final class ClientGone: Sendable {
    private struct State {
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    init(_ future: EventLoopFuture<Void>) {
        future.whenComplete { [weak self] _ in self?.finish() }
    }

    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = self.state.withLock { state in
                    if !state.isOver { state.waiting = continuation }
                    return state.isOver
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            self.finish()
        }
    }

    private func finish() {
        let waiting = self.state.withLock { state in
            state.isOver = true
            return state.waiting.take()
        }
        waiting?.resume()
    }
}
