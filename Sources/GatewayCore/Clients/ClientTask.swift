import GatewayConfiguration
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// A connection to open on behalf of the control plane.
package struct ClientConnectionRequest: Sendable {
    package let url: EndpointURL
    /// Path and query of a WebSocket, percent-encoded.
    package var resource = "/"
    package var fields: [HTTPField] = []
    package var subprotocols: [String] = []
    package var deflate: DeflatePolicy?
    /// For `tls` and `wss`, and for a stream that starts TLS later.
    package var context: TLSContext?
    /// Host name for SNI and verification; `nil` uses the URL's host.
    package var serverName: String?
    package var keepAlive = KeepAliveSettings()
    package var options = WebSocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    package var priority: Float = 0.5
    package var description: String?
    package var labels: [String: String] = [:]
    /// Evaluated for each address before it is tried; `nil` permits all.
    package var permits: (@Sendable (SocketAddress) -> Bool)?
    /// Called for each step of the opening, on its loop.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ url: EndpointURL) {
        self.url = url
    }

    var target: OpeningTarget {
        var target = OpeningTarget(self.url.connectTarget)
        target.socket = self.keepAlive.socketOptions
        target.connectTimeout = self.connectTimeout
        target.permits = self.permits
        target.watch = self.watch
        guard self.url.scheme.speaksTLS, let context = self.context else { return target }
        var secure = SecureSettings(context: context, serverName: self.serverName ?? self.url.hostName)
        secure.timeout = self.options.handshakeTimeout
        target.secure = secure
        return target
    }

    var handshake: ClientHandshake {
        ClientHandshake(
            authority: self.url.authority, target: self.resource, subprotocols: self.subprotocols,
            offers: self.deflate?.offers ?? [], fields: self.fields)
    }
}

/// A connection, or a tunnel of two, opened through the control plane.
protocol RequestedConnection: LiveConnection {
    /// The requested URL; of a tunnel, downstream.
    var url: String { get }
    /// The requested upstream URL of a tunnel.
    var upstreamURL: String? { get }
    /// When payload could flow; `nil` before.
    var openedAt: MonotonicInstant? { get }
    /// Records of its tasks.
    var records: [TaskRecord] { get }
}

extension RequestedConnection {
    var key: ConnectionKey { ConnectionKey(self.identifier) }
    var routeName: String? { nil }
}

extension GatewayEvent {
    init(_ kind: Kind, of connection: any RequestedConnection) {
        self.init(kind)
        self.connection = connection.key
        self.url = connection.url
        self.upstream = connection.upstreamURL
    }
}

/// The task that carries out one request, up to the point where payload can flow. On its loop.
struct RequestedTask {
    /// How a task ended.
    struct End {
        let failure: TaskFailure?
        let cause: TerminationCause

        /// The party that caused the end: `side`, or the gateway if it lacked a resource.
        func terminatingParty(_ side: TunnelSide) -> TerminationParty {
            if case .cannotConnect(let fault) = self.failure, fault.isLocalResourceFailure {
                .gateway
            } else {
                TerminationParty(side)
            }
        }
    }

    let url: String
    let link: RelayEndpoint
    /// The request as shown by the REST interface, if handshakes are kept.
    private let handshake: ClientHandshake?

    /// - Parameter startsPaused: no message is read before a relay is attached.
    init(_ request: ClientConnectionRequest, on gateway: LoopGateway, startsPaused: Bool = false) {
        self.url = request.url.description
        if request.url.scheme.speaksWebSocket {
            let handshake = request.handshake
            let opening = ClientOpening(target: request.target, handshake: handshake, deflate: request.deflate)
            self.link = .webSocket(
                WebSocketTask(
                    opening: opening, on: gateway.loop, options: request.options, startsPaused: startsPaused))
            self.handshake = gateway.shared.keepsHandshakes ? handshake : nil
        } else {
            self.link = .stream(StreamTask(to: request.target, on: gateway.loop))
            self.handshake = nil
        }
        self.link.record.priority = request.priority
        if let description = request.description { self.link.record.update { $0.label = description } }
    }

    var webSocket: WebSocketTask? {
        if case .webSocket(let task) = self.link { task } else { nil }
    }

    /// - Parameters:
    ///   - opened: called once, if it opens.
    ///   - ended: called once, when it has ended.
    func start(opened: @escaping () -> Void, ended: @escaping (End) -> Void) {
        switch self.link {
        case .stream(let task):
            task.openObserver = opened
            task.whenEnded { failure in
                ended(End(failure: failure, cause: failure.map { TerminationCause($0) } ?? .clean(closeCode: nil)))
            }
            task.resumeOnLoop()
        case .webSocket(let task):
            task.openObserver = opened
            task.whenEnded { end in
                let cause = end.failure.map { TerminationCause($0) } ?? CloseSignal(code: end.code?.rawValue).cause
                ended(End(failure: end.failure, cause: cause))
            }
            task.resumeOnLoop()
        }
    }

    /// The task gets a new owner: its end is no longer observed here.
    func releaseOwnership() {
        switch self.link {
        case .stream(let task): task.forgetEndObservers()
        case .webSocket(let task): task.forgetEndObservers()
        }
    }

    /// Ends the connection in any state, the opening included; an open WebSocket is closed with this code.
    func giveUp(_ code: CloseCode) {
        switch self.link {
        case .stream(let task): task.cancelOnLoop()
        case .webSocket(let task) where task.record.openedAt == nil: task.cancelOnLoop()
        case .webSocket(let task): task.fail(with: code, reason: [])
        }
    }

    func report(_ key: ConnectionKey, createdAt: MonotonicInstant, at now: MonotonicInstant) -> ConnectionReport {
        let kind: ConnectionKind = self.webSocket == nil ? .stream : .webSocket
        var report = ConnectionReport(
            key, kind, isAccepted: false, stage: .opening, createdAt: createdAt, takenAt: now)
        report.url = self.url
        report.read(self.link)
        if let handshake = self.handshake, let response = self.webSocket?.response {
            report.handshake = HandshakeMetadata(handshake.redacted, response: response.shown)
        }
        return report
    }
}
