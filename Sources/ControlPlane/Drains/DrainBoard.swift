import ControlAPI
import Synchronization

/// The drains that are under way or were. Bounded: the oldest that is over makes room.
final class DrainBoard: Sendable {
    static let limit = 64

    private struct State {
        var runs: [(id: String, run: DrainRun)] = []
        var last = 0
    }

    private let state = Mutex(State())

    func run(_ id: String) -> DrainRun? {
        self.state.withLock { $0.runs.first { $0.id == id }?.run }
    }

    var all: [Drain] {
        get async {
            var drains: [Drain] = []
            for run in self.state.withLock({ $0.runs.map(\.run) }) { drains.append(await run.shown()) }
            return drains
        }
    }

    func add(_ make: (String) -> DrainRun) -> DrainRun? {
        self.state.withLock { state in
            if state.runs.count >= Self.limit { state.runs.removeFirst() }
            state.last += 1
            let id = "\(state.last)"
            let run = make(id)
            state.runs.append((id, run))
            return run
        }
    }
}
