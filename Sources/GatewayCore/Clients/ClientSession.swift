import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection opened by command: a task that belongs to the control plane, and that nobody relays.
final class ClientSession {
    typealias Opened = (Result<ConnectionKey, ClientFailure>) -> Void

    let identifier: UInt64
    let url: String
    private let gateway: LoopGateway
    private let task: TunnelLink
    private let createdAt: MonotonicInstant
    private var opened: Opened?
    /// Set when we began the end.
    private var termination: TerminationReason?
    private let handshake: ClientHandshake?

    init(_ order: ClientOrder, on gateway: LoopGateway, opened: @escaping Opened) {
        self.identifier = gateway.nextIdentifier()
        self.url = order.url.description
        self.gateway = gateway
        self.createdAt = gateway.loop.now
        self.opened = opened
        if order.url.scheme.speaksWebSocket {
            let handshake = order.handshake
            let opening = ClientOpening(target: order.target, handshake: handshake, deflate: order.deflate)
            self.task = .webSocket(WebSocketTask(opening: opening, on: gateway.loop, options: order.options))
            self.handshake = gateway.shared.keepsHandshakes ? handshake : nil
        } else {
            self.task = .stream(StreamTask(to: order.target, on: gateway.loop))
            self.handshake = nil
        }
        self.task.record.priority = order.priority
        if let description = order.description { self.task.record.update { $0.label = description } }
    }

    var key: ConnectionKey { ConnectionKey(self.identifier) }

    var record: TaskRecord { self.task.record }

    var webSocket: WebSocketTask? {
        if case .webSocket(let task) = self.task { task } else { nil }
    }

    func start() {
        switch self.task {
        case .stream(let task):
            task.openObserver = { self.isOpen() }
            task.whenEnded { self.over($0) }
            task.resumeOnLoop()
        case .webSocket(let task):
            task.openObserver = { self.isOpen() }
            task.whenEnded { self.over($0) }
            task.resumeOnLoop()
        }
    }

    /// Answers who asked without waiting any longer.
    func answer() {
        let opened = self.opened
        self.opened = nil
        opened?(.success(self.key))
    }

    private func isOpen() {
        self.gateway.shared.log.opened(self.key, url: self.url)
        self.gateway.totals.handshakes.add(self.createdAt.duration(to: self.gateway.loop.now))
        self.gateway.shared.journal?.publish(GatewayEvent(.opened, of: self))
        self.answer()
    }

    // MARK: The end

    private func over(_ failure: TaskFailure?) {
        self.conclude(failure, failure.map { TerminationCause($0) } ?? .clean(closeCode: nil))
    }

    private func over(_ end: WebSocketEnd) {
        let cause = end.failure.map { TerminationCause($0) } ?? CloseSignal(code: end.code?.rawValue).cause
        self.conclude(end.failure, cause)
        if let task = self.webSocket, task.unreadMessages > 0 { self.gateway.keepLeftover(self) }
    }

    private func conclude(_ failure: TaskFailure?, _ cause: TerminationCause) {
        let wasOpening = self.task.record.openedAt == nil
        let reason = self.termination ?? TerminationReason(.upstream, wasOpening ? .connecting : .relaying, cause)
        self.gateway.ended(self, reason, detail: failure?.description)
        guard let opened = self.opened else { return }
        self.opened = nil
        let response = self.webSocket?.response
        opened(.failure(ClientFailure(self.key, failure: failure ?? .ended, response: response)))
    }

    private func begins(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        let phase: TerminationPhase = self.task.record.openedAt == nil ? .connecting : .relaying
        self.termination = self.termination ?? TerminationReason(party, phase, cause)
    }
}

extension ClientSession: LiveConnection {
    var routeName: String? { nil }
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

    func link(_ side: TunnelSide) -> TunnelLink? {
        side == .downstream ? self.task : nil
    }

    func reports(at now: MonotonicInstant) -> [ConnectionReport] {
        let kind: ConnectionKind = self.webSocket == nil ? .stream : .webSocket
        var report = ConnectionReport(
            self.key, kind, isAccepted: false, stage: .opening, createdAt: self.createdAt, takenAt: now)
        report.url = self.url
        report.read(self.task)
        if let handshake = self.handshake, let response = self.webSocket?.response {
            report.handshake = HandshakeFacts(handshake.shown, response: response.shown)
        }
        return [report]
    }
}
