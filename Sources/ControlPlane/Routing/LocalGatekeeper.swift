import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Lets everybody in who can reach the listener, which is only ever on loopback or a Unix socket.
struct LocalGatekeeper: Gatekeeper {
    func admit(_ request: Request, to operation: Operation, context: ControlRequestContext) -> Caller {
        .local
    }
}
