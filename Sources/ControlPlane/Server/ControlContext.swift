import GatewayCore
import Logging
import StreamTransport
import Synchronization

/// What every resource works with.
final class ControlContext: Sendable {
    let gateway: Gateway
    let configuration: RunningConfiguration
    let version: String
    let logger: Logger
    let anchor: TimeAnchor
    let transfers: TransferShelf
    private let currentPhase = Mutex(ServicePhase.starting)

    init(gateway: Gateway, configuration: RunningConfiguration, version: String, logger: Logger) {
        self.gateway = gateway
        self.configuration = configuration
        self.version = version
        self.logger = logger
        let loop = gateway.loops.first
        self.transfers = TransferShelf(targets: TransferTargets()) {
            loop?.system.now() ?? MonotonicInstant(nanoseconds: 0)
        }
        let now = gateway.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0)
        self.anchor = TimeAnchor(instant: now, milliseconds: Machine.wallClockMilliseconds())
    }

    /// The loops' clock, from any thread.
    var now: MonotonicInstant { self.gateway.loops.first?.system.now() ?? self.anchor.instant }

    var phase: ServicePhase {
        get { self.currentPhase.withLock { $0 } }
        set { self.currentPhase.withLock { $0 = newValue } }
    }
}
