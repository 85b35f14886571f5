import StreamTransport
import Synchronization

/// State shared by all loops of a gateway. Used when connections open and close, never per byte.
package final class GatewayShared: Sendable {
    let log: TunnelLog
    package let hub: RoomHub
    package let counters = GatewayCounters()
    /// Connections remembered after their end, on all loops together.
    package let closedLimit: Int
    /// Whether opening handshakes are kept for the REST interface.
    package let keepsHandshakes: Bool
    /// Receives events; `nil` without a control plane.
    package let eventLog: EventLog?
    /// Returns freed memory to the system; `nil` in simulations.
    let memory: MemoryTrimmer?
    private let admission: Mutex<Admission>

    package init(
        log: TunnelLog, hub: RoomHub, admission: Admission, closedLimit: Int = 0, keepsHandshakes: Bool = false,
        eventLog: EventLog? = nil, returnsMemory: Bool = false
    ) {
        self.memory = returnsMemory ? MemoryTrimmer() : nil
        self.log = log
        self.hub = hub
        self.admission = Mutex(admission)
        self.closedLimit = closedLimit
        self.keepsHandshakes = keepsHandshakes
        self.eventLog = eventLog
    }

    var loopCount: Int { self.hub.loopCount }

    /// One loop's share of the limit.
    func closedLimit(onLoop index: Int) -> Int {
        let loops = max(1, self.loopCount)
        return self.closedLimit / loops + (index < self.closedLimit % loops ? 1 : 0)
    }

    package func withAdmission<R: Sendable>(_ body: (inout Admission) -> R) -> R {
        self.admission.withLock { body(&$0) }
    }
}

extension LoopIsolated {
    /// Runs `body` on the loop and returns its result.
    func perform<R: Sendable>(_ body: @escaping @Sendable (Value) -> R) async -> R {
        await withCheckedContinuation { continuation in
            self.execute { continuation.resume(returning: body($0)) }
        }
    }

    /// Runs `body` on the loop and waits for its completion.
    /// - Parameter body: must call the completion once.
    func request<R: Sendable>(_ body: @escaping @Sendable (Value, @escaping (R) -> Void) -> Void) async -> R {
        await withCheckedContinuation { continuation in
            self.execute { body($0) { continuation.resume(returning: $0) } }
        }
    }
}
