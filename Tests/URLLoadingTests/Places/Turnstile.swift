import Synchronization

/// Lets so many in at a time, in the order in which they came.
final class Turnstile: Sendable {
    private struct State {
        var free: Int
        var waiting: [(count: Int, enter: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    init(places: Int) { self.state = Mutex(State(free: places)) }

    /// - Parameter count: places that are taken, all at once.
    func enter(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let entering = self.state.withLock { state in
                state.waiting.append((count, continuation))
                return Self.next(&state)
            }
            for one in entering { one.resume() }
        }
    }

    func leave(_ count: Int = 1) {
        let entering = self.state.withLock { state in
            state.free += count
            return Self.next(&state)
        }
        for one in entering { one.resume() }
    }

    /// Who comes first goes first, though another would fit.
    private static func next(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        var entering: [CheckedContinuation<Void, Never>] = []
        while let first = state.waiting.first, first.count <= state.free {
            state.free -= first.count
            entering.append(first.enter)
            state.waiting.removeFirst()
        }
        return entering
    }
}
