import Foundation
import Synchronization

/// The names of the events, in order.
final class EventLog: Sendable {
    private struct State {
        var names: [String] = []
        var awaited: [(name: String, gate: Gate)] = []
    }

    private let state = Mutex(State())

    var names: [String] { self.state.withLock { $0.names } }

    /// - Parameter folding: whether repeated events count once: the number of pieces is not fixed.
    func add(_ name: String, folding: Bool = false) {
        let gates = self.state.withLock { state -> [Gate] in
            if !folding || state.names.last != name { state.names.append(name) }
            return state.awaited.filter { $0.name == name }.map(\.gate)
        }
        for gate in gates { gate.open() }
    }

    /// Waits for an event of this name, or returns at once after it.
    @discardableResult
    func has(_ name: String, within patience: DispatchTimeInterval = Gate.patience) async -> Bool {
        let gate = Gate()
        let isThere = self.state.withLock { state in
            if state.names.contains(name) { return true }
            state.awaited.append((name, gate))
            return false
        }
        return isThere ? true : await gate.pass(within: patience)
    }

    func count(_ name: String) -> Int { self.names.count { $0 == name } }
}
