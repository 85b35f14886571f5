import ByteKernels
import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A task in a room that speaks no protocol: each message is one publication.
protocol PlainRoomMember: RoomSubscriber, OutputSource {
    associatedtype Task: RelayTask

    /// Released when it ends.
    var task: Task? { get }
    var rooms: LoopRooms { get }
    /// Records why the gateway ends the connection.
    var session: EndpointSession? { get set }
    /// Membership in the room; `nil` before the task joins and after it leaves.
    var subscription: RoomSubscription? { get set }
    /// Whether it has left, perhaps while it waited to enter: it never enters again.
    var hasLeft: Bool { get set }
    /// Beginning of the message that is being received.
    var unfinished: [UInt8] { get set }
    /// Messages that have no result yet.
    var unstoredMessages: Int { get set }
    /// The end of its connection, which waits for them.
    var pendingEnd: PendingEnd? { get set }
    /// `nil` before the first message in a room whose policy has a `publication-rate`, unless the client has used up some of
    /// its rate on former connections.
    var pacing: PublicationPacing? { get set }
    /// For the limits of one client.
    var clientKey: RoomClientKey? { get }
}

extension PlainRoomMember {
    var takesMore: Bool { self.queuedBytes < self.rooms.hub.buffers.memberOutput }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }
    var unconsumedBytes: Int { self.subscription.map { $0.room.backlog(of: $0) } ?? 0 }

    func pauseReading() { self.task?.beginStall() }
    /// The room takes more; the policy's rate may not allow it yet.
    func resumeReading() { if self.pacing?.isPausing != true { self.task?.endStall() } }
    func awaitProgress() { self.task?.awaitProgress() }

    func outputProgressed() {
        if let subscription = self.subscription { self.rooms.outputProgressed(subscription) }
    }

    /// Enters the room, if its policy lets the client in. Nothing is read before.
    /// - Parameter info: for the room's list of members.
    func join(_ room: String, _ info: ClientInfo, refused: @escaping (Self, PlainRefusal) -> Void) {
        let policy = self.rooms.hub.policy(of: room) ?? .open
        let isKnown = !info.user.isEmpty
        guard isKnown || self.rooms.hub.currentSettings.admitsAnonymous,
            policy.subscribe == .everyone || policy.subscribe == .users && isKnown,
            !self.isRestricted(.ban, info, in: room)
        else { return refused(self, .notPermitted) }
        self.pauseReading()
        self.rooms.join(
            room,
            LoopRooms.Entry(member: self, info: info, client: self.clientKey) { [self] result in
                switch result {
                case .success(let joined):
                    self.subscription = joined.subscription
                    self.continueRate(joined.subscription.room.shared.policy)
                    // Its connection ended, or an operator removed it, while it waited.
                    if self.hasLeft { self.leave() }
                    // The ban did not find it among the members.
                    if self.subscription != nil, self.isRestricted(.ban, info, in: room) {
                        self.leave()
                        refused(self, .notPermitted)
                    }
                // Its connection ended while it waited.
                case .failure where self.hasLeft: break
                case .failure(.full): refused(self, .full)
                case .failure(.notMade(let error)): refused(self, .notMade(error))
                // It recovers nothing.
                case .failure(.away), .failure(.notReady), .failure(.unrecoverablePosition): refused(self, .away)
                }
                // A room that is behind has paused it again.
                if self.subscription?.isPaused != true { self.resumeReading() }
            })
    }

    private func isRestricted(_ kind: Moderation.Kind, _ info: ClientInfo, in room: String) -> Bool {
        self.rooms.hub.moderation.contains(kind, user: info.user, room: room, now: self.rooms.hub.now)
    }

    private func mayPublish(_ policy: RoomPolicy, _ info: ClientInfo, in room: String) -> Bool {
        switch policy.publish {
        case .everyone, .members: break
        case .users: if info.user.isEmpty { return false }
        case .token, .nobody: return false
        }
        return !self.isRestricted(.mute, info, in: room) && !self.isRestricted(.ban, info, in: room)
    }

    /// Sends the message that is complete now to the others.
    /// - Parameter refused: called at once, or when the message could not be published.
    func publish(_ kind: MessageKind, refused: @escaping (Self, PlainRefusal) -> Void) {
        guard let subscription = self.subscription else { return }
        let plain = RoomMessage.Plain(kind: kind, bytes: self.unfinished)
        self.unfinished = []
        let shared = subscription.room.shared
        let policy = shared.policy
        guard self.mayPublish(policy, subscription.info ?? ClientInfo(), in: shared.name) else {
            return refused(self, .notPermitted)
        }
        guard policy.isImplied || plain.bytes.count <= policy.maximumMessageSize else {
            return refused(self, .tooLarge)
        }
        // Checking whether the text is JSON costs more than delivering it: only where the room keeps it.
        let payload = policy.keepsHistory ? plain.payload : .binary([])
        let publication = Publication(payload, info: subscription.info)
        self.unstoredMessages += 1
        self.rooms.publish(RoomPublication(publication: publication, plain: plain), in: shared, by: subscription) {
            [weak self] result in
            guard let self else { return }
            self.unstoredMessages -= 1
            if self.unstoredMessages == 0 { self.pendingEnd.take()?.finish() }
            guard case .failure = result, self.subscription != nil else { return }
            refused(self, .away)
        }
        if let rate = policy.publicationRate { self.keepRate(rate) }
    }

    /// Reads no further message until the rate allows one more.
    private func keepRate(_ rate: Int) {
        // Nothing is read from a member that has left.
        guard self.subscription != nil else { return }
        if self.pacing?.meter.rate != rate {
            self.pacing?.stop()
            self.beginPacing(RateMeter(rate: rate, now: self.rooms.now))
        }
        if self.pacing?.published() == true { self.pauseReading() }
    }

    private func beginPacing(_ meter: RateMeter) {
        self.pacing = PublicationPacing(meter, on: self.rooms.loop) { [weak self] in self?.paceAllowsReading() }
    }

    /// Begins with what the client has published on former connections.
    private func continueRate(_ policy: RoomPolicy) {
        guard let client = self.clientKey else { return }
        if let meter = self.rooms.hub.clientRates.meters(of: client)?.publications(of: policy) {
            self.beginPacing(meter)
        }
    }

    /// The client's next connection begins with what this one has published.
    private func keep(_ meter: RateMeter, of policy: RoomPolicy) {
        guard let client = self.clientKey else { return }
        let now = self.rooms.now
        self.rooms.hub.clientRates.use(client, at: now) { $0.add(meter, ofPublicationsIn: policy.name, at: now) }
    }

    private func paceAllowsReading() {
        if self.subscription?.isPaused != true { self.resumeReading() }
    }

    /// Ends the connection, which the client has ended, when its messages have their results.
    func endWhenStored(_ end: @escaping (Task) -> Void) {
        self.leave()
        guard self.unstoredMessages > 0 else {
            if let task = self.task { end(task) }
            return
        }
        self.pendingEnd = PendingEnd(on: self.rooms.loop) { [weak self] in
            if let task = self?.task { end(task) }
        }
    }

    func leave() {
        self.hasLeft = true
        guard let subscription = self.subscription.take() else { return }
        self.unfinished = []
        self.rooms.leave(subscription)
        guard let pacing = self.pacing.take() else { return }
        self.keep(pacing.meter, of: subscription.room.shared.policy)
        pacing.stop()
    }
}

/// Why a client without a protocol may not do something in a room.
enum PlainRefusal {
    case notPermitted
    /// The message has more bytes than the room's policy allows.
    case tooLarge
    case full
    case notMade(RoomHub.AcquireError)
    /// The cluster cannot be reached, so that the client's message was not published, or perhaps not.
    case away
    /// More waits for the client than may.
    case slow

    fileprivate var close: (code: CloseCode, reason: String) {
        switch self {
        case .notPermitted: (.policyViolation, "the room's policy does not permit it")
        case .tooLarge: (.messageTooBig, "the message is larger than the room's max-message-size")
        case .full: (.tryAgainLater, "the room has as many members as it may have")
        case .notMade(.tooManyRooms): (.tryAgainLater, "the gateway has as many rooms as it may have")
        case .notMade(.tooManyRoomsOfClient): (.tryAgainLater, "the client has made as many rooms as it may have")
        case .away: (.tryAgainLater, "the rooms cannot be reached; the last message may be lost")
        case .slow: (.tryAgainLater, "reading too slowly for this room")
        }
    }
}

extension EndpointSession {
    fileprivate func recordTermination(_ refusal: PlainRefusal) {
        let code = refusal.close.code.rawValue
        switch refusal {
        case .tooLarge: self.recordTermination(.violation(closeCode: code), by: .downstream)
        case .notPermitted, .full, .notMade, .away, .slow:
            self.recordTermination(.abnormalClose(closeCode: code), by: .gateway)
        }
    }
}

/// One WebSocket in a room.
final class PlainWebSocketMember: WebSocketRelay {
    private(set) var task: WebSocketTask?
    weak var session: EndpointSession?
    private let room: String
    let rooms: LoopRooms
    var unfinished: [UInt8] = []
    var subscription: RoomSubscription?
    var hasLeft = false
    var pacing: PublicationPacing?
    var unstoredMessages = 0
    var pendingEnd: PendingEnd?
    private let info: ClientInfo
    let clientKey: RoomClientKey?

    init(room: String, rooms: LoopRooms, info: ClientInfo, from address: SocketAddress) {
        self.room = room
        self.rooms = rooms
        self.info = info
        self.clientKey = RoomClientKey(user: info.user, address: address)
    }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.join(self.room, self.info) { $0.end($1) }
    }

    private func end(_ refusal: PlainRefusal) {
        self.session?.recordTermination(refusal)
        self.end(refusal.close.code, refusal.close.reason)
    }

    func end(_ code: CloseCode, _ reason: String) {
        self.leave()
        self.rooms.hub.counters.addDisconnect(code.rawValue)
        self.task?.close(code, reason: Array(reason.utf8.prefix(123)))
    }

    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        // A removed member may still receive input for a while.
        guard self.subscription != nil else { return }
        self.unfinished.append(bytes)
        if mark.endsMessage { self.publish(mark.kind) { $0.end($1) } }
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.endWhenStored { $0.answerClose(code, reason: []) }
        return false
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.leave()
        self.pendingEnd.take()?.cancel()
        self.task = nil
    }
}

extension PlainWebSocketMember: PlainRoomMember {
    func deliver(_ message: LoopMessage, to subscription: RoomSubscription) {
        guard let task = self.task, let plain = message.plain else { return }
        task.send(plain)
    }

    var batchOutput: BatchOutput? { self.task.map { BatchOutput(task: $0, encoding: nil) } }

    func backlogExceeded(_ subscription: RoomSubscription) { self.end(.slow) }

    /// It never is positioned.
    func interrupted(_ subscription: RoomSubscription, at position: StreamPosition) {}
}

/// A byte stream in a room. The route's framing converts between its bytes and the room's messages.
final class PlainStreamMember: TransportConsumer {
    private(set) var task: StreamTask?
    weak var session: EndpointSession?
    private let room: String
    let rooms: LoopRooms
    private var toMessages: StreamToMessages
    private var toStream: MessagesToStream
    private let messageLimit: Int
    private let framing: Framing
    var unfinished: [UInt8] = []
    var subscription: RoomSubscription?
    var hasLeft = false
    var pacing: PublicationPacing?
    var unstoredMessages = 0
    var pendingEnd: PendingEnd?
    private let client: String
    let clientKey: RoomClientKey?

    init(room: String, rooms: LoopRooms, client: String, from address: SocketAddress, settings: TunnelSettings) {
        self.client = client
        self.clientKey = RoomClientKey(user: "", address: address)
        self.room = room
        self.rooms = rooms
        self.messageLimit = settings.maximumMessageSize ?? TunnelSettings.defaultMaximumMessageSize
        self.framing = settings.framing
        self.toMessages = StreamToMessages(settings.framing, messageLimit: self.messageLimit)
        self.toStream = MessagesToStream(settings.framing, messageLimit: self.messageLimit)
    }

    func start(_ task: StreamTask) {
        self.task = task
        task.attach(self)
        // Reading begins when it has entered.
        self.join(self.room, ClientInfo(client: self.client)) { $0.end($1) }
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var offset = 0
        while let subscription = self.subscription, let task = self.task {
            // The rest is offered again when the room takes more, or in the next turn.
            guard !subscription.isPaused, self.pacing?.isPausing != true, !task.loop.budgetIsSpent else {
                return offset
            }
            let start = offset
            let step = self.toMessages.next(bytes.bytes, at: &offset)
            task.loop.spend(TurnBudget.frame + offset - start)
            switch step {
            case .exhausted: return offset
            case .chunk(let range, let mark): self.publish(bytes.bytes.extracting(range), mark)
            case .replacement(let made, let mark): made.withRawSpan { self.publish($0, mark) }
            case .violation(let violation): self.fail(violation)
            }
        }
        return bytes.byteCount
    }

    private func publish(_ piece: RawSpan, _ mark: ChunkPosition) {
        guard self.subscription != nil else { return }
        guard piece.byteCount <= self.messageLimit - self.unfinished.count else { return self.fail(.messageTooLong) }
        self.unfinished.append(piece)
        if mark.endsMessage { self.publish(mark.kind) { $0.end($1) } }
    }

    func inputClosed() {
        switch self.toMessages.finish() {
        case .replacement(let made, let mark)?: made.withRawSpan { self.publish($0, mark) }
        case .violation(let violation)?: return self.fail(violation)
        case .chunk?, .exhausted?, nil: break
        }
        self.endWhenStored { $0.close(linger: .seconds(5)) }
    }

    func transportEnded(_ end: TransportEnd) {
        self.leave()
        self.pendingEnd.take()?.cancel()
        self.task = nil
    }

    /// The peer broke the framing.
    private func fail(_ violation: FramingViolation) {
        self.session?.recordTermination(.violation(closeCode: violation.closeCode), by: .downstream)
        self.reset()
    }

    private func end(_ refusal: PlainRefusal) {
        self.session?.recordTermination(refusal)
        self.reset()
    }

    private func reset() {
        self.leave()
        self.task?.reset()
    }
}

extension PlainStreamMember: PlainRoomMember {
    func deliver(_ message: LoopMessage, to subscription: RoomSubscription) {
        guard let task = self.task, let plain = message.plain else { return }
        var made: [UInt8] = []
        let delivery = plain.payload.withRawSpan { self.toStream.take($0, .whole(plain.kind), into: &made) }
        switch delivery {
        case .unchanged: plain.payload.withRawSpan { task.enqueue($0) }
        case .rewritten: made.withRawSpan { task.enqueue($0) }
        case .violation:
            // The message cannot be expressed in this member's framing: it is skipped, and the member stays.
            self.toStream = MessagesToStream(self.framing, messageLimit: self.messageLimit)
        }
    }

    func backlogExceeded(_ subscription: RoomSubscription) { self.end(.slow) }

    /// It never is positioned.
    func interrupted(_ subscription: RoomSubscription, at position: StreamPosition) {}
}
