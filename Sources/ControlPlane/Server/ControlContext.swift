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
    /// Where connections opened by command may lead.
    let targets: TargetRules
    /// How callers may say who they are.
    let access: AccessSchemes
    /// For WebSockets of the control plane itself: none of the gateway's loops is to carry them.
    let loop: Loop
    let requests = RequestFigures()
    let transfers: TransferShelf
    private let currentPhase = Mutex(ServicePhase.starting)

    init(
        gateway: Gateway, settings: ControlSettings, configuration: RunningConfiguration, version: String,
        logger: Logger, loop: Loop
    ) {
        self.targets = settings.targets
        self.access = AccessSchemes(settings)
        self.loop = loop
        self.gateway = gateway
        self.configuration = configuration
        self.version = version
        self.logger = logger
        self.transfers = TransferShelf(targets: TransferTargets(settings.targets)) { loop.system.now() }
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
