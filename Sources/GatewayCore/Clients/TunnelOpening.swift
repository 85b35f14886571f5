import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The two connections of a tunnel opened through the control plane, until both are open and joined. If one fails to
/// open, the other is closed.
final class TunnelOpening {
    private struct Side {
        let task: RelayEndpoint
        /// Our request, for the REST interface; `nil` unless handshakes are kept.
        let handshake: ClientHandshake?
        var isOpen = false
    }

    let context: ConnectionContext
    private let relaySettings: RelaySettings
    private var downstream: Side
    private var upstream: Side
    /// `nil` once the result is reported: the opening is over.
    private var opened: ClientSession.Opened?

    init(_ request: ClientTunnelRequest, on gateway: LoopGateway, opened: @escaping ClientSession.Opened) {
        let urls = (request.downstream.url.description, request.upstream.url.description)
        self.context = ConnectionContext(.requested(url: urls.0, upstreamURL: urls.1), on: gateway)
        self.relaySettings = RelaySettings(request.settings)
        self.downstream = Self.side(request.downstream, on: gateway)
        self.upstream = Self.side(request.upstream, on: gateway)
        self.opened = opened
    }

    private static func side(_ request: ClientConnectionRequest, on gateway: LoopGateway) -> Side {
        Side(
            task: request.task(on: gateway.loop, startsPaused: true),
            handshake: gateway.shared.keepsHandshakes ? request.handshake : nil)
    }

    private subscript(side: TunnelSide) -> Side {
        get {
            switch side {
            case .downstream: self.downstream
            case .upstream: self.upstream
            }
        }
        set {
            switch side {
            case .downstream: self.downstream = newValue
            case .upstream: self.upstream = newValue
            }
        }
    }

    /// Opens both sides concurrently.
    func start() {
        for side in TunnelSide.allCases where self.opened != nil {
            self[side].task.open {
                self.sideOpened(side)
            } ended: {
                self.failed(side, $0)
            }
        }
    }

    private func sideOpened(_ side: TunnelSide) {
        self[side].isOpen = true
        self.keepHandshake(side)
        guard self.downstream.isOpen, self.upstream.isOpen, let opened = self.opened.take() else { return }
        for side in TunnelSide.allCases { self[side].task.forgetEndObservers() }
        let tunnel = Tunnel(
            self.context, downstream: self.downstream.task, upstream: self.upstream.task,
            relaySettings: self.relaySettings)
        self.context.gateway.opened(tunnel)
        opened(.success(self.context.key))
        tunnel.start()
    }

    private func keepHandshake(_ side: TunnelSide) {
        let key = ConnectionKey(self.context.identifier, side)
        self.context.gateway.keepHandshake(key, self[side].handshake, self[side].task.response)
    }

    // MARK: The end

    private func failed(_ side: TunnelSide, _ end: TaskEnd) {
        guard self.opened != nil else { return }
        let detail = "\(side.rawValue): \(end.failure?.description ?? "the peer ended the connection")"
        let response = self[side].task.response
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
        for side in TunnelSide.allCases { Self.close(self[side].task, code) }
        self.context.gateway.ended(
            self.context, reason, detail: detail, downstream: self.downstream.task.record,
            upstream: self.upstream.task.record)
        opened(.failure(failure))
    }

    /// Ends a task in any state; an open WebSocket is closed with this code.
    private static func close(_ task: RelayEndpoint, _ code: CloseCode) {
        switch task {
        case .webSocket(let task) where task.record.openedAt != nil: task.fail(with: code, reason: [])
        case .stream, .webSocket: task.cancel()
        }
    }
}

extension TunnelOpening: LiveConnection {
    var queuedBytes: Int { self.downstream.task.queuedBytes + self.upstream.task.queuedBytes }

    func drain() { self.cancel(.operator, .drained) }
    func abandon(_ party: TerminationParty, _ cause: TerminationCause) { self.cancel(party, cause) }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        self.context.report(self.downstream.task, self.upstream.task, at: now, to: &reports)
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
