import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection opened through the control plane: a task that is not relayed.
final class ClientSession {
    typealias Opened = (Result<ConnectionKey, ClientFailure>) -> Void

    let context: ConnectionContext
    private let task: RelayEndpoint
    private var opened: Opened?
    /// Our request, until its response is known; `nil` unless handshakes are kept.
    private var handshake: ClientHandshake?
    /// Set when the gateway initiated the end.
    private var termination: TerminationReason?

    init(_ request: ClientConnectionRequest, on gateway: LoopGateway, opened: @escaping Opened) {
        self.context = ConnectionContext(.requested(url: request.url.description, upstreamURL: nil), on: gateway)
        self.task = request.task(on: gateway.loop)
        self.opened = opened
        self.handshake = gateway.shared.keepsHandshakes ? request.handshake : nil
    }

    var webSocket: WebSocketTask? { self.task.webSocket }

    func start() {
        self.task.open {
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
        self.context.gateway.keepHandshake(self.context.key, self.handshake, self.task.response)
        self.handshake = nil
    }

    private func complete(_ result: Result<ConnectionKey, ClientFailure>) {
        let opened = self.opened
        self.opened = nil
        opened?(result)
    }

    // MARK: The end

    private func ended(_ end: TaskEnd) {
        self.keepHandshake()
        let reason = self.termination ?? TerminationReason(end, of: .upstream, self.phase)
        self.context.gateway.ended(
            self.context, reason, detail: end.failure?.description, downstream: self.task.record)
        self.complete(
            .failure(ClientFailure(self.context.key, failure: end.failure ?? .ended, response: self.task.response)))
        if let task = self.webSocket, task.unreadMessages > 0 { self.context.gateway.keepUnread(self) }
    }

    private var phase: TerminationPhase { self.context.openedAt == nil ? .connecting : .relaying }

    private func begins(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        self.termination = self.termination ?? TerminationReason(party, self.phase, cause)
    }
}

extension ClientSession: LiveConnection {
    var queuedBytes: Int { self.task.queuedBytes }

    func drain() {
        self.begins(.drained)
        self.finish(.goingAway)
    }

    func stop(_ signal: CloseSignal) {
        self.begins(.stopped)
        self.finish(signal)
    }

    private func finish(_ signal: CloseSignal) {
        switch self.task {
        case .webSocket(let task):
            task.resumeOnLoop()
            task.close(signal.closeCode, reason: signal.reason)
        case .stream(let task): task.closeOnLoop()
        }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.begins(cause, by: party)
        switch self.task {
        case .webSocket(let task): task.reset()
        case .stream(let task): task.cancelOnLoop()
        }
    }

    func link(_ side: TunnelSide) -> RelayEndpoint? {
        side == .downstream ? self.task : nil
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        var report = self.context.report(self.webSocket == nil ? .stream : .webSocket, stage: .opening, at: now)
        report.read(self.task)
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
            "\(field.name): \(field.name.lowercased() == "set-cookie" ? HandshakeMetadata.hidden : field.value)\r\n"
        }
        return Array("HTTP/1.1 \(self.status) \(self.reason)\r\n\(fields.joined())\r\n".utf8)
    }
}
