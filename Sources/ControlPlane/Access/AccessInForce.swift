import GatewayCore
import HummingbirdCore
import Synchronization

/// The access that counts now: each request is judged by what the last reload said.
final class AccessInForce: Sendable {
    private struct State {
        var access: ControlAccess
        var number: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ settings: ControlSettings) {
        self.state = Mutex(State(access: ControlAccess(settings)))
    }

    var now: ControlAccess { self.state.withLock { $0.access } }
    /// Grows with each change.
    var number: UInt64 { self.state.withLock { $0.number } }

    func replace(_ settings: ControlSettings) {
        let access = ControlAccess(settings)
        self.state.withLock { $0 = State(access: access, number: $0.number + 1) }
    }
}

extension AccessInForce: Gatekeeper {
    func inspect(_ request: Request) throws(ControlProblem) {
        try self.now.gatekeeper.inspect(request)
    }

    func caller(of request: Request, for operation: Operation) throws(ControlProblem) -> Caller {
        try self.now.gatekeeper.caller(of: request, for: operation)
    }
}
