import GatewayCore
import Synchronization

/// Which connections somebody is attached to: one at a time, as two would take each other's messages.
final class AttachedConnections: Sendable {
    private let keys = Mutex<Set<ConnectionKey>>([])

    func withLock<R: Sendable>(_ body: (inout sending Set<ConnectionKey>) -> sending R) -> R {
        self.keys.withLock { body(&$0) }
    }
}
