import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol
import WireText

/// A connection opened through the control plane: a task that is not relayed.
final class ClientSession {
    typealias Opened = (Result<ConnectionKey, ClientFailure>) -> Void

    let context: ConnectionContext
    private let peer: RelayEndpoint
    private var opened: Opened?
    /// Our request, until its response is known; `nil` unless handshakes are kept.
    private var handshake: ClientHandshake?
    var termination: TerminationReason?

    init(_ request: ClientConnectionRequest, on gateway: LoopGateway, opened: @escaping Opened) {
        self.context = ConnectionContext(.requested(url: request.shownURL, upstreamURL: nil), on: gateway)
        self.peer = request.endpoint(on: gateway.loop)
        self.opened = opened
        self.handshake = gateway.shared.keepsHandshakes ? request.handshake : nil
    }

    var webSocket: WebSocketTask? { self.peer.webSocket }

    func start() {
        self.peer.task.open {
            self.isOpen()
        } ended: {
            self.ended($0)
        }
    }

    private func isOpen() {
        self.keepHandshake()
        self.context.gateway.opened(self)
        self.complete(.success(self.context.key))
    }

    private func keepHandshake() {
        self.context.gateway.keepHandshake(self.context.key, self.handshake, self.peer.response)
        self.handshake = nil
    }

    private func complete(_ result: Result<ConnectionKey, ClientFailure>) {
        self.opened.take()?(result)
    }

    // MARK: The end

    private func ended(_ end: TaskEnd) {
        self.keepHandshake()
        let reason = self.termination ?? TerminationReason(end, of: .upstream, self.phase)
        self.context.gateway.ended(
            self.context, reason, detail: end.failure?.description, downstream: self.peer.task.record)
        self.complete(
            .failure(ClientFailure(self.context.key, failure: end.failure ?? .ended, response: self.peer.response)))
        if let task = self.webSocket, task.unreadMessages > 0 { self.context.gateway.keepUnread(self) }
    }
}

extension ClientSession: TaskSession {
    var endpoint: RelayEndpoint? { self.peer }

    func drain() {
        self.recordTermination(.drained)
        self.finish(.goingAway)
    }

    func stop(_ signal: CloseSignal) {
        self.recordTermination(.stopped)
        self.finish(signal)
    }

    private func finish(_ signal: CloseSignal) {
        self.webSocket?.resumeOnLoop()
        self.close(signal) { $0.closeOnLoop() }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.recordTermination(cause, by: party)
        switch self.peer {
        case .webSocket(let task): task.reset()
        case .stream(let task): task.cancelOnLoop()
        }
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        var report = self.context.report(self.kind, stage: .opening, at: now)
        report.read(self.peer)
        reports.append(report)
    }
}

extension ClientHandshake {
    /// The request as sent, except for the random `Sec-WebSocket-Key`.
    var redacted: RequestHead {
        let text = String(decoding: self.rendered(nonce: []), as: UTF8.self)
        let lines = text.split(separator: "\r\n").dropFirst()
        let fields = lines.compactMap { line -> HTTPField? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return HTTPField(String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
        return RequestHead(method: "GET", target: self.target, fields: HTTPFields(fields))
    }
}

extension ResponseHead {
    /// The serialized head without credentials.
    var redacted: [UInt8] {
        let fields = self.fields.all.map { field in
            "\(field.name): \(CredentialName.matches(field.name) ? CredentialName.hiddenValue : field.value)\r\n"
        }
        return Array("HTTP/1.1 \(self.status) \(self.reason)\r\n\(fields.joined())\r\n".utf8)
    }
}
