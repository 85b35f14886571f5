import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A connection opened by command: a task that belongs to the control plane, and that nobody relays.
final class ClientSession {
    typealias Opened = (Result<ConnectionKey, ClientFailure>) -> Void

    let identifier: UInt64
    private let gateway: LoopGateway
    private let ordered: OrderedTask
    private let createdAt: MonotonicInstant
    private var opened: Opened?
    /// Set when we began the end.
    private var termination: TerminationReason?

    init(_ order: ClientOrder, on gateway: LoopGateway, opened: @escaping Opened) {
        self.identifier = gateway.nextIdentifier()
        self.gateway = gateway
        self.createdAt = gateway.loop.now
        self.opened = opened
        self.ordered = OrderedTask(order, on: gateway)
    }

    var webSocket: WebSocketTask? { self.ordered.webSocket }

    func start() {
        self.ordered.start {
            self.isOpen()
        } ended: {
            self.over($0)
        }
    }

    private func isOpen() {
        self.gateway.stands(self, since: self.createdAt)
        let opened = self.opened
        self.opened = nil
        opened?(.success(self.key))
    }

    // MARK: The end

    private func over(_ end: OrderedTask.End) {
        let reason = self.termination ?? TerminationReason(end.party(.upstream), self.phase, end.cause)
        self.gateway.ended(self, reason, detail: end.failure?.description)
        if let opened = self.opened {
            self.opened = nil
            let response = self.webSocket?.response
            opened(.failure(ClientFailure(self.key, failure: end.failure ?? .ended, response: response)))
        }
        if let task = self.webSocket, task.unreadMessages > 0 { self.gateway.keepLeftover(self) }
    }

    private var phase: TerminationPhase { self.openedAt == nil ? .connecting : .relaying }

    private func begins(_ cause: TerminationCause, by party: TerminationParty = .operator) {
        self.termination = self.termination ?? TerminationReason(party, self.phase, cause)
    }
}

extension ClientSession: OrderedConnection {
    var url: String { self.ordered.url }
    var upstreamURL: String? { nil }
    var openedAt: MonotonicInstant? { self.ordered.link.record.openedAt }
    var records: [TaskRecord] { [self.ordered.link.record] }
    var queuedBytes: Int { self.ordered.link.queuedBytes }

    func drain() {
        self.begins(.drained)
        self.finish(.goingAway)
    }

    func stop(_ signal: CloseSignal) {
        self.begins(.stopped)
        self.finish(signal)
    }

    private func finish(_ signal: CloseSignal) {
        switch self.ordered.link {
        case .webSocket(let task):
            task.resumeOnLoop()
            task.close(signal.closeCode, reason: signal.reason)
        case .stream(let task): task.closeOnLoop()
        }
    }

    func abandon(_ party: TerminationParty, _ cause: TerminationCause) {
        self.begins(cause, by: party)
        switch self.ordered.link {
        case .webSocket(let task): task.reset()
        case .stream(let task): task.cancelOnLoop()
        }
    }

    func link(_ side: TunnelSide) -> TunnelLink? {
        side == .downstream ? self.ordered.link : nil
    }

    func report(at now: MonotonicInstant, to reports: inout [ConnectionReport]) {
        reports.append(self.ordered.report(self.key, createdAt: self.createdAt, at: now))
    }
}
