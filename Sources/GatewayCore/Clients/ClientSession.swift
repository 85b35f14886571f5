import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection opened through the control plane: a task that is not relayed.
final class ClientSession {
    typealias Opened = (Result<ConnectionKey, ClientFailure>) -> Void

    let identifier: UInt64
    private let gateway: LoopGateway
    private let requested: RequestedTask
    private let createdAt: MonotonicInstant
    private var opened: Opened?
    /// Set when the gateway initiated the end.
    private var termination: TerminationReason?

    init(_ request: ClientConnectionRequest, on gateway: LoopGateway, opened: @escaping Opened) {
        self.identifier = gateway.nextIdentifier()
        self.gateway = gateway
        self.createdAt = gateway.loop.now
        self.opened = opened
        self.requested = RequestedTask(request, on: gateway)
    }

    var webSocket: WebSocketTask? { self.requested.webSocket }

    func start() {
        self.requested.start {
            self.isOpen()
        } ended: {
            self.over($0)
        }
    }

    private func isOpen() {
        self.gateway.connectionOpened(self, since: self.createdAt)
        let opened = self.opened
        self.opened = nil
        opened?(.success(self.key))
    }

    // MARK: The end

    private func over(_ end: RequestedTask.End) {
        let reason = self.termination ?? TerminationReason(end.terminatingParty(.upstream), self.phase, end.cause)
        self.gateway.ended(self, reason, detail: end.failure?.description)
        if let opened = self.opened {
            self.opened = nil
            let response = self.webSocket?.response
            opened(.failure(ClientFailure(self.key, failure: end.failure ?? .ended, response: response)))
        }
        if let task = self.webSocket, task.unreadMessages > 0 { self.gateway.keepUnread(self) }
    }

    private var phase: TerminationPhase { self.openedAt == nil ? .connecting : .relaying }

    private func begins(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        self.termination = self.termination ?? TerminationReason(party, self.phase, cause)
    }
}

extension ClientSession: RequestedConnection {
    var url: String { self.requested.url }
    var upstreamURL: String? { nil }
    var openedAt: MonotonicInstant? { self.requested.link.record.openedAt }
    var records: [TaskRecord] { [self.requested.link.record] }
    var queuedBytes: Int { self.requested.link.queuedBytes }

    func drain() {
        self.begins(.drained)
        self.finish(.goingAway)
    }

    func stop(_ signal: CloseSignal) {
        self.begins(.stopped)
        self.finish(signal)
    }

    private func finish(_ signal: CloseSignal) {
        switch self.requested.link {
        case .webSocket(let task):
            task.resumeOnLoop()
            task.close(signal.closeCode, reason: signal.reason)
        case .stream(let task): task.closeOnLoop()
        }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.begins(cause, by: party)
        switch self.requested.link {
        case .webSocket(let task): task.reset()
        case .stream(let task): task.cancelOnLoop()
        }
    }

    func link(_ side: TunnelSide) -> RelayEndpoint? {
        side == .downstream ? self.requested.link : nil
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        reports.append(self.requested.report(self.key, createdAt: self.createdAt, at: now))
    }
}

/// An opening in progress, so that it can be cancelled. Used on its loop only.
final class PendingOpening {
    private var connection: (any RequestedConnection)?
    private var isGivenUp = false
    private var isOver = false

    func registered(_ connection: any RequestedConnection) {
        guard !self.isOver else { return }
        if self.isGivenUp { return connection.abandon(.operator, .stopped) }
        self.connection = connection
    }

    /// The connection is open, or failed to open.
    func openingCompleted() {
        self.isOver = true
        self.connection = nil
    }

    func giveUp() {
        self.isGivenUp = true
        let connection = self.connection
        self.connection = nil
        connection?.abandon(.operator, .stopped)
    }
}

/// Why a requested connection failed to open.
package struct ClientFailure: Error, Sendable {
    /// Key of the connection, under which its final report is kept.
    package let key: ConnectionKey?
    package let failure: TaskFailure
    /// The server's answer to the opening handshake, if it was not 101.
    package let response: ResponseHead?

    init(_ key: ConnectionKey?, failure: TaskFailure, response: ResponseHead?) {
        self.key = key
        self.failure = failure
        self.response = response
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
    /// The head serialized without credentials.
    var shown: [UInt8] {
        let fields = self.fields.all.map { field in
            "\(field.name): \(field.name.lowercased() == "set-cookie" ? HandshakeMetadata.hidden : field.value)\r\n"
        }
        return Array("HTTP/1.1 \(self.status) \(self.reason)\r\n\(fields.joined())\r\n".utf8)
    }
}
