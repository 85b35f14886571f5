import Dispatch
import Synchronization

/// A value that another thread provides once; further ones are counted and dropped.
final class Outcome<Value: Sendable>: Sendable {
    struct MissingResult: Error {}

    private struct State {
        var value: Value?
        var count = 0
    }

    private let state = Mutex(State())
    private let gate = Gate()

    /// The number of calls.
    var count: Int { self.state.withLock { $0.count } }
    var now: Value? { self.state.withLock { $0.value } }

    func give(_ value: Value) {
        self.state.withLock { state in
            state.count += 1
            if state.value == nil { state.value = value }
        }
        self.gate.open()
    }

    func value(within patience: DispatchTimeInterval = Gate.patience) async throws -> Value {
        guard await self.gate.pass(within: patience), let value = self.now else { throw MissingResult() }
        return value
    }
}
