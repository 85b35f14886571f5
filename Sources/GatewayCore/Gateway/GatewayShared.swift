import StreamTransport
import Synchronization

/// What all loops of a gateway share. Touched when connections come and go, never for their bytes.
package final class GatewayShared: Sendable {
    let log: TunnelLog
    let hub: ChatHub
    package let counters = GatewayCounters()
    private let lastIdentifier = Atomic<UInt64>(0)
    private let admission: Mutex<Admission>

    package init(log: TunnelLog, hub: ChatHub, admission: Admission) {
        self.log = log
        self.hub = hub
        self.admission = Mutex(admission)
    }

    /// Identifiers given out so far: connections that were accepted.
    package var identifiers: UInt64 {
        self.lastIdentifier.load(ordering: .relaxed)
    }

    func nextIdentifier() -> UInt64 {
        self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
    }

    package func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R {
        self.admission.withLock { body(&$0) }
    }
}
