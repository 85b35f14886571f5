import Synchronization

/// Suspends tasks until the gate is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func open() {
        let waiting = self.state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for work in waiting { work() }
    }

    func whenOpen(_ work: @escaping @Sendable () -> Void) {
        let isOpen = self.state.withLock { state in
            if !state.isOpen { state.waiting.append(work) }
            return state.isOpen
        }
        if isOpen { work() }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            self.whenOpen { continuation.resume() }
        }
    }
}
