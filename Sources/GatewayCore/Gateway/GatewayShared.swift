import StreamTransport
import Synchronization

/// What all loops of a gateway share. Touched when connections come and go, never for their bytes.
final class GatewayShared: Sendable {
    let log: TunnelLog
    let hub: ChatHub
    let counters = GatewayCounters()
    private let lastIdentifier = Atomic<UInt64>(0)
    private let admission: Mutex<Admission>

    init(log: TunnelLog, hub: ChatHub, admission: Admission) {
        self.log = log
        self.hub = hub
        self.admission = Mutex(admission)
    }

    func nextIdentifier() -> UInt64 {
        self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
    }

    func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R {
        self.admission.withLock { body(&$0) }
    }
}
