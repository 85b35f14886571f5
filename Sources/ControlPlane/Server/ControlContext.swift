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
    /// Who may do what, and where to.
    let access: AccessInForce
    let budget: RequestBudget
    /// For WebSockets of the control plane itself: none of the gateway's loops is to carry them.
    let loop: Loop
    let requests = RequestFigures()
    let transfers: TransferShelf
    let operations = OperationBoard()
    private let currentPhase = Mutex(ServicePhase.starting)

    init(
        gateway: Gateway, settings: ControlSettings, configuration: RunningConfiguration, version: String,
        logger: Logger, loop: Loop
    ) {
        let access = AccessInForce(settings)
        self.access = access
        self.budget = RequestBudget(limit: settings.maximumRequests, rate: settings.requestRate)
        self.loop = loop
        self.gateway = gateway
        self.configuration = configuration
        self.version = version
        self.logger = logger
        self.transfers = TransferShelf(targets: TransferTargets { access.now.targets }, journal: gateway.journal) {
            loop.system.now()
        }
        let now = gateway.loops.first?.system.now() ?? MonotonicInstant(nanoseconds: 0)
        self.anchor = TimeAnchor(instant: now, milliseconds: Machine.wallClockMilliseconds())
    }

    /// Where connections opened by command may lead.
    var targets: TargetRules { self.access.now.targets }

    /// The loops' clock, from any thread.
    var now: MonotonicInstant { self.gateway.loops.first?.system.now() ?? self.anchor.instant }

    var phase: ServicePhase {
        get { self.currentPhase.withLock { $0 } }
        set { self.currentPhase.withLock { $0 = newValue } }
    }
}
