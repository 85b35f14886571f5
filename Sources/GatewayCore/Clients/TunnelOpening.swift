import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The two connections of a tunnel opened through the control plane, until both are open and joined. If one fails to
/// open, the other is closed.
final class TunnelOpening {
    private struct Side {
        let endpoint: RelayEndpoint
        /// Our request, for the REST interface; `nil` unless handshakes are kept.
        let handshake: ClientHandshake?
        var isOpen = false
    }

    let context: ConnectionContext
    private let relaySettings: RelaySettings
    private var sides: TunnelSides<Side>
    /// `nil` once the result is reported: the opening is over.
    private var opened: ClientSession.Opened?

    init(_ request: ClientTunnelRequest, on gateway: LoopGateway, opened: @escaping ClientSession.Opened) {
        let urls = (request[.downstream].shownURL, request[.upstream].shownURL)
        self.context = ConnectionContext(.requested(url: urls.0, upstreamURL: urls.1), on: gateway)
        self.relaySettings = RelaySettings(request.settings)
        self.sides = TunnelSides(
            downstream: Self.side(request[.downstream], on: gateway),
            upstream: Self.side(request[.upstream], on: gateway))
        self.opened = opened
    }

    private static func side(_ request: ClientConnectionRequest, on gateway: LoopGateway) -> Side {
        Side(
            endpoint: request.endpoint(on: gateway.loop, startsPaused: true),
            handshake: gateway.shared.keepsHandshakes ? request.handshake : nil)
    }

    /// Opens both sides concurrently.
    func start() {
        for side in TunnelSide.allCases where self.opened != nil {
            self.sides[side].endpoint.task.open {
                self.sideOpened(side)
            } ended: {
                self.failed(side, $0)
            }
        }
    }

    private func sideOpened(_ side: TunnelSide) {
        self.sides[side].isOpen = true
        self.keepHandshake(side)
        guard self.sides.downstream.isOpen, self.sides.upstream.isOpen, let opened = self.opened.take() else { return }
        for side in TunnelSide.allCases { self.sides[side].endpoint.task.forgetEndObservers() }
        let tunnel = Tunnel(
            self.context, downstream: self.sides.downstream.endpoint, upstream: self.sides.upstream.endpoint,
            relaySettings: self.relaySettings)
        self.context.gateway.opened(tunnel)
        opened(.success(self.context.key))
        tunnel.start()
    }

    private func keepHandshake(_ side: TunnelSide) {
        let key = ConnectionKey(self.context.identifier, side)
        self.context.gateway.keepHandshake(key, self.sides[side].handshake, self.sides[side].endpoint.response)
    }

    // MARK: The end

    private func failed(_ side: TunnelSide, _ end: TaskEnd) {
        guard self.opened != nil else { return }
        let detail = "\(side.rawValue): \(end.failure?.description ?? "the peer ended the connection")"
        let response = self.sides[side].endpoint.response
        let failure = ClientFailure(
            ConnectionKey(self.context.identifier, side), failure: end.failure ?? .ended, response: response)
        self.keepHandshake(side)
        // 1014 is WebSocket's equivalent of 502.
        self.end(
            TerminationReason(end, of: TerminationParty(side), .connecting), CloseCode(rawValue: 1014), failure,
            detail: detail)
    }

    private func cancel(_ party: TerminationParty, _ cause: TerminationCause) {
        let failure = ClientFailure(self.context.key, failure: .cancelled, response: nil)
        self.end(TerminationReason(party, .connecting, cause), .goingAway, failure)
    }

    private func end(_ reason: TerminationReason, _ code: CloseCode, _ failure: ClientFailure, detail: String? = nil) {
        guard let opened = self.opened.take() else { return }
        for side in TunnelSide.allCases { Self.close(self.sides[side].endpoint, code) }
        self.context.gateway.ended(
            self.context, reason, detail: detail, downstream: self.sides.downstream.endpoint.task.record,
            upstream: self.sides.upstream.endpoint.task.record)
        opened(.failure(failure))
    }

    /// Ends a task in any state; an open WebSocket is closed with this code.
    private static func close(_ endpoint: RelayEndpoint, _ code: CloseCode) {
        switch endpoint {
        case .webSocket(let task) where task.record.openedAt != nil: task.fail(with: code, reason: [])
        case .stream, .webSocket: endpoint.task.cancelOnLoop()
        }
    }
}

extension TunnelOpening: LiveConnection {
    var queuedBytes: Int { self.sides.downstream.endpoint.queuedBytes + self.sides.upstream.endpoint.queuedBytes }

    func drain() { self.cancel(.operator, .drained) }
    func abandon(_ party: TerminationParty, _ cause: TerminationCause) { self.cancel(party, cause) }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        self.context.report(self.sides.downstream.endpoint, self.sides.upstream.endpoint, at: now, to: &reports)
    }
}

/// A tunnel between two peers to open on behalf of the control plane.
package struct ClientTunnelRequest: Sendable {
    package let settings: TunnelSettings
    private let sides: TunnelSides<ClientConnectionRequest>

    package init(downstream: ClientConnectionRequest, upstream: ClientConnectionRequest, settings: TunnelSettings) {
        self.settings = settings
        self.sides = TunnelSides(downstream: downstream, upstream: upstream)
    }

    package subscript(side: TunnelSide) -> ClientConnectionRequest { self.sides[side] }
}
