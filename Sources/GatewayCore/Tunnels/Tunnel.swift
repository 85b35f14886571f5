import GatewayConfiguration
import SessionTasks
import StreamTransport

/// Two joined connections on one loop: an accepted one with its upstream, or two opened through the control plane.
/// Performs the actions of its machine, and keeps its deadlines.
final class Tunnel {
    /// Time from the first action that ends a side until the remaining connections are reset.
    static let closingTimeout = Duration.seconds(10)

    let context: ConnectionContext
    private let ends: TunnelSides<TunnelEnd>
    private let relaySettings: RelaySettings
    private var machine: TunnelMachine
    /// Made when the closing begins.
    private var closingTimer: LoopTimer?
    /// Bytes sent when the closing last progressed.
    private var sentAtClosing: UInt64 = 0

    /// Joins two open tasks; bytes flow after `start`.
    /// - Parameter context: of both; its timer is not armed.
    init(
        _ context: ConnectionContext, downstream: RelayEndpoint, upstream: RelayEndpoint, relaySettings: RelaySettings
    ) {
        let settings = relaySettings.settings
        self.context = context
        self.relaySettings = relaySettings
        self.machine = TunnelMachine(
            downstream: downstream.kind, upstream: upstream.kind, halfClose: settings.halfClose)
        self.ends = TunnelSides(
            downstream: TunnelEnd(.downstream, downstream, to: upstream, settings: settings),
            upstream: TunnelEnd(.upstream, upstream, to: downstream, settings: settings))
    }

    private var loop: Loop { self.context.loop }

    func start() {
        self.loop.assertOnLoop()
        let settings = self.relaySettings.settings
        self.ends.downstream.join(self.ends.upstream, in: self, settings: settings)
        self.ends.upstream.join(self.ends.downstream, in: self, settings: settings)
        self.followMachine()
        self.armTimer()
        self.ends.upstream.start()
        self.ends.downstream.start()
    }

    // MARK: Events

    func inputFinished(_ side: TunnelSide) { self.perform(self.machine.inputFinished(side)) }
    func endMarkReceived(_ side: TunnelSide) { self.perform(self.machine.endMarkReceived(side)) }
    func connectionClosed(_ side: TunnelSide) { self.perform(self.machine.connectionClosed(side)) }
    func connectionFailed(_ side: TunnelSide, _ failure: ConnectionFailure) {
        self.perform(self.machine.connectionFailed(side, failure))
    }
    func violated(_ side: TunnelSide, closeCode: UInt16) {
        self.perform(self.machine.violated(side, closeCode: closeCode))
    }
    func closeReceived(_ side: TunnelSide, _ signal: CloseSignal) {
        self.perform(self.machine.closeReceived(side, signal))
    }

    /// A message arrived from a side whose direction ended: a violation after an end mark, otherwise discarded.
    func receivedAfterEnd(_ side: TunnelSide) {
        guard self.machine.watchesEndMark(from: side), self.machine.direction(from: side) == .finished else { return }
        self.violated(side, closeCode: 1002)
    }

    func webSocketEnded(_ side: TunnelSide, _ end: WebSocketEnd) {
        switch end.failure {
        case nil: break
        case .protocolViolation(let code, _)?: self.violated(side, closeCode: code)
        case .messageTooLong?: self.violated(side, closeCode: 1009)
        case .peerUnresponsive?: self.perform(self.machine.peerUnresponsive(side))
        case .connectionLost?, .secureConnectionFailed?, .cancelled?, .timedOut?, .directionClosed?, .usageError?,
            .ended?,
            .cannotConnect?, .handshakeRefused?, .closed?:
            if let failure = end.failure.flatMap({ ConnectionFailure($0) }) {
                return self.connectionFailed(side, failure)
            }
        }
        self.connectionClosed(side)
    }

    // MARK: Actions

    private func perform(_ actions: TunnelActions) {
        self.loop.assertOnLoop()
        self.followMachine()
        if actions.startsClosingTimer { self.armClosing() }
        for side in TunnelSide.allCases {
            if let action = actions[side] { self.ends[side].perform(action) }
        }
        if let reason = actions.termination { self.finish(reason) }
    }

    private func followMachine() {
        self.ends.downstream.follow(self.machine)
        self.ends.upstream.follow(self.machine)
    }

    /// Both connections have ended.
    private func finish(_ reason: TerminationReason) {
        self.loop.disarm(self.context.timer)
        if let timer = self.closingTimer { self.loop.disarm(timer) }
        self.ends.downstream.leave()
        self.ends.upstream.leave()
        self.context.releaseEndpoint()
        self.context.gateway.ended(
            self.context, reason, downstream: self.ends.downstream.task.record, upstream: self.ends.upstream.task.record
        )
    }

    // MARK: Deadlines

    private var sentBytes: UInt64 {
        self.ends.downstream.task.sentBytes &+ self.ends.upstream.task.sentBytes
    }

    private func armClosing() {
        self.sentAtClosing = self.sentBytes
        let timer = self.closingTimer ?? LoopTimer()
        self.closingTimer = timer
        self.loop.arm(timer, after: Self.closingTimeout, target: self)
    }

    /// Restarts the closing timeout while the peer still accepts earlier output.
    private func closingTimerFired() {
        guard self.sentBytes == self.sentAtClosing else { return self.armClosing() }
        self.perform(self.machine.closingTimedOut())
        if !self.machine.isOver { self.armClosing() }
    }

    private var openedAt: MonotonicInstant { self.context.openedAt ?? self.context.createdAt }

    private var lastActivity: MonotonicInstant {
        let instants = [self.ends.downstream, self.ends.upstream].compactMap { $0.task.record.lastActivityAt }
        return instants.max() ?? self.openedAt
    }

    private func armTimer() {
        let deadline = self.relaySettings.deadline(
            openedAt: self.openedAt, lastActivity: self.lastActivity, tokenTimeLeft: self.context.tokenTimeLeft,
            now: self.loop.now)
        guard let deadline else { return }
        self.loop.arm(self.context.timer, at: deadline, target: self)
    }
}

extension Tunnel: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        if timer === self.closingTimer { return self.closingTimerFired() }
        let passed = self.relaySettings.passedTimeout(
            openedAt: self.openedAt, lastActivity: self.lastActivity, tokenTimeLeft: self.context.tokenTimeLeft,
            now: self.loop.now)
        switch passed {
        case .maximumAge: self.perform(self.machine.maximumAgeReached())
        case .idle: self.perform(self.machine.idleTimedOut())
        case .tokenExpiry: self.perform(self.machine.tokenExpired())
        case nil: self.armTimer()
        }
    }
}

extension Tunnel: LiveConnection {
    var queuedBytes: Int { self.ends.downstream.endpoint.queuedBytes + self.ends.upstream.endpoint.queuedBytes }

    func drain() { self.perform(self.machine.drainBegan()) }
    func stop(_ signal: CloseSignal) { self.perform(self.machine.stopRequested(signal)) }
    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.perform(self.machine.abandoned(party, cause))
    }

    func endpoint(on side: TunnelSide) -> RelayEndpoint? { self.ends[side].endpoint }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        self.context.report(self.ends.downstream.endpoint, self.ends.upstream.endpoint, at: now, to: &reports)
    }
}

/// Settings of a tunnel, by reference: tunnels of a route share one copy.
final class RelaySettings: Sendable {
    let settings: TunnelSettings

    init(_ settings: TunnelSettings) {
        self.settings = settings
    }
}

/// Idle timeout, maximum age and the token's expiry of a tunnel, or of a connection that ends in the gateway.
extension RelaySettings {
    enum PassedTimeout {
        case idle
        case maximumAge
        case tokenExpiry
    }

    /// Longest time between two looks at the wall clock, which may be set while a token is valid.
    private static let clockInterval = Duration.seconds(60)

    /// When to check them next; `nil` without any.
    func deadline(
        openedAt: MonotonicInstant, lastActivity: MonotonicInstant, tokenTimeLeft: Duration?, now: MonotonicInstant
    ) -> MonotonicInstant? {
        let idle = self.settings.idleTimeout.map { lastActivity.advanced(by: $0) }
        let age = self.settings.maximumAge.map { openedAt.advanced(by: $0) }
        let token = tokenTimeLeft.map { now.advanced(by: min($0, Self.clockInterval)) }
        return [idle, age, token].compactMap(\.self).min()
    }

    func passedTimeout(
        openedAt: MonotonicInstant, lastActivity: MonotonicInstant, tokenTimeLeft: Duration?, now: MonotonicInstant
    ) -> PassedTimeout? {
        if let tokenTimeLeft, tokenTimeLeft <= .zero { return .tokenExpiry }
        if let age = self.settings.maximumAge, openedAt.advanced(by: age) <= now { return .maximumAge }
        if let idle = self.settings.idleTimeout, lastActivity.advanced(by: idle) <= now { return .idle }
        return nil
    }
}
