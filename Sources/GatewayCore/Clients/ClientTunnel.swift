import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A tunnel opened through the control plane: two connections of our own, joined once both are open. If one fails to
/// open, the other is closed.
final class ClientTunnel {
    let identifier: UInt64
    private let gateway: LoopGateway
    private let downstream: RequestedTask
    private let upstream: RequestedTask
    private let relaySettings: RelaySettings
    private let createdAt: MonotonicInstant
    private(set) var openedAt: MonotonicInstant?
    private var opened: ClientSession.Opened?
    /// Sides that are not open yet.
    private var pendingSides = Set(TunnelSide.allCases)
    /// Set once both sides are open.
    private var tunnel: Tunnel?
    private var isOver = false

    init(_ request: ClientTunnelRequest, on gateway: LoopGateway, opened: @escaping ClientSession.Opened) {
        self.identifier = gateway.nextIdentifier()
        self.gateway = gateway
        self.createdAt = gateway.loop.now
        self.relaySettings = RelaySettings(request.settings)
        self.downstream = RequestedTask(request.downstream, on: gateway, startsPaused: true)
        self.upstream = RequestedTask(request.upstream, on: gateway, startsPaused: true)
        self.opened = opened
    }

    private func task(_ side: TunnelSide) -> RequestedTask {
        switch side {
        case .downstream: self.downstream
        case .upstream: self.upstream
        }
    }

    /// Opens both sides concurrently.
    func start() {
        for side in TunnelSide.allCases where !self.isOver {
            self.task(side).start {
                self.sideOpened(side)
            } ended: {
                self.failed(side, $0)
            }
        }
    }

    private func sideOpened(_ side: TunnelSide) {
        self.pendingSides.remove(side)
        guard self.pendingSides.isEmpty, !self.isOver else { return }
        self.join()
    }

    private func join() {
        for side in TunnelSide.allCases { self.task(side).releaseOwnership() }
        let tunnel = Tunnel(
            downstream: self.downstream.link, upstream: self.upstream.link, relaySettings: self.relaySettings,
            on: self.gateway.loop
        ) { reason in
            self.finish(reason)
        }
        self.tunnel = tunnel
        self.openedAt = self.gateway.loop.now
        self.gateway.connectionOpened(self, since: self.createdAt)
        self.complete(.success(self.key))
        tunnel.start()
    }

    private func complete(_ result: Result<ConnectionKey, ClientFailure>) {
        let opened = self.opened
        self.opened = nil
        opened?(result)
    }

    // MARK: The end

    private func failed(_ side: TunnelSide, _ end: RequestedTask.End) {
        guard !self.isOver else { return }
        let detail = "\(side.rawValue): \(end.failure?.description ?? "the peer ended the connection")"
        // 1014 is WebSocket's equivalent of 502.
        self.giveUp(
            TerminationReason(end.terminatingParty(side), .connecting, end.cause), CloseCode(rawValue: 1014),
            detail: detail
        )
        let response = self.task(side).webSocket?.response
        let key = ConnectionKey(self.identifier, side)
        self.complete(.failure(ClientFailure(key, failure: end.failure ?? .ended, response: response)))
    }

    /// Ends the opening of both sides.
    private func giveUp(_ reason: TerminationReason, _ code: CloseCode, detail: String? = nil) {
        guard !self.isOver, self.tunnel == nil else { return }
        self.isOver = true
        for side in TunnelSide.allCases { self.task(side).giveUp(code) }
        self.gateway.ended(self, reason, detail: detail)
    }

    private func giveUp(_ party: TerminationParty, _ cause: TerminationCause) {
        self.giveUp(TerminationReason(party, .connecting, cause), .goingAway)
        self.complete(.failure(ClientFailure(self.key, failure: .cancelled, response: nil)))
    }

    private func finish(_ reason: TerminationReason) {
        self.isOver = true
        self.gateway.ended(self, reason, detail: nil)
        self.tunnel = nil
    }
}

extension ClientTunnel: RequestedConnection {
    var url: String { self.downstream.url }
    var upstreamURL: String? { self.upstream.url }
    var records: [TaskRecord] { [self.downstream.link.record, self.upstream.link.record] }
    var queuedBytes: Int { self.downstream.link.queuedBytes + self.upstream.link.queuedBytes }

    func drain() {
        self.tunnel == nil ? self.giveUp(.operator, .drained) : self.tunnel?.drain()
    }

    func stop(_ signal: CloseSignal) {
        self.tunnel == nil ? self.giveUp(.operator, .stopped) : self.tunnel?.stop(signal)
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.tunnel == nil ? self.giveUp(party, cause) : self.tunnel?.abandon(party, cause)
    }

    /// Only the tunnel uses the tasks.
    func link(_ side: TunnelSide) -> RelayEndpoint? {
        self.tunnel == nil ? nil : self.task(side).link
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        var (first, second) = (self.report(.downstream, at: now), self.report(.upstream, at: now))
        // Reading of this side is paused because the other side's output is full: that side is the stalled one.
        first.sendStalled = second.receiveStalled
        second.sendStalled = first.receiveStalled
        reports.append(first)
        reports.append(second)
    }

    private func report(_ side: TunnelSide, at now: MonotonicInstant) -> ConnectionReport {
        let key = ConnectionKey(self.identifier, side)
        var report = self.task(side).report(key, createdAt: self.createdAt, at: now)
        report.partner = ConnectionKey(self.identifier, side.other)
        return report
    }
}

/// A tunnel between two peers to open on behalf of the control plane.
package struct ClientTunnelRequest: Sendable {
    package let downstream: ClientConnectionRequest
    package let upstream: ClientConnectionRequest
    package let settings: TunnelSettings

    package init(downstream: ClientConnectionRequest, upstream: ClientConnectionRequest, settings: TunnelSettings) {
        self.downstream = downstream
        self.upstream = upstream
        self.settings = settings
    }

    subscript(side: TunnelSide) -> ClientConnectionRequest {
        switch side {
        case .downstream: self.downstream
        case .upstream: self.upstream
        }
    }
}
