import Foundation
import Synchronization

/// The names of what happened, in their order.
final class EventLog: Sendable {
    private struct State {
        var names: [String] = []
        var awaited: [(name: String, gate: Gate)] = []
    }

    private let state = Mutex(State())

    var names: [String] { self.state.withLock { $0.names } }

    /// - Parameter folding: whether several in a row are one: pieces come as they come.
    func add(_ name: String, folding: Bool = false) {
        let gates = self.state.withLock { state -> [Gate] in
            if !folding || state.names.last != name { state.names.append(name) }
            return state.awaited.filter { $0.name == name }.map(\.gate)
        }
        for gate in gates { gate.open() }
    }

    /// Waits for an event of this name; one that has happened already will do.
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
