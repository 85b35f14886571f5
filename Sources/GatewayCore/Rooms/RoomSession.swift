import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport

/// One client of the rooms on its connection: performs what `RoomClient` decides.
final class RoomSession {
    /// A push of a room, or one outside of all rooms.
    private struct Push {
        let message: SharedMessage
        /// Of a publication that the room keeps; else 0.
        var offset: UInt64 = 0
        var channel = ""
    }

    /// The way of pushes: the client gets none before the reply to `connect`.
    private enum PushOutput {
        case held([Push], bytes: Int)
        case released

        var isReleased: Bool { if case .released = self { true } else { false } }
        var heldBytes: Int { if case .held(_, let bytes) = self { bytes } else { 0 } }

        /// - Returns: whether the push is kept for later.
        mutating func hold(_ push: Push) -> Bool {
            guard case .held(var pushes, let bytes) = self else { return false }
            self = .released
            pushes.append(push)
            self = .held(pushes, bytes: bytes + push.message.payload.count + RoomMessage.overhead)
            return true
        }

        /// - Returns: those that were held; `nil` if they are released already.
        mutating func release() -> [Push]? {
            guard case .held(let pushes, _) = self else { return nil }
            self = .released
            return pushes
        }
    }

    /// Bytes queued in the connection above which no further command is performed.
    private static let outputWatermark = WebSocketTask.outputWatermark
    /// Work of a command, besides what it does in a room.
    private static let commandWork = TurnBudget.frame * 4
    /// Commands that wait for their results, above which no further one is performed.
    private static let pendingLimit = 128
    /// The same for commands whose results may have 16 MiB each.
    private static let pendingReadLimit = 8

    private(set) weak var connection: (any RoomConnection)?
    let rooms: LoopRooms
    private let loop: Loop
    private let gateway: LoopGateway
    /// Number of the connection in the REST interface.
    private let connectionNumber: UInt64
    private let address: SocketAddress?
    private let encoding: SessionEncoding
    private var client: RoomClient
    private var subscriptions: [String: RoomSubscription] = [:]
    private var flow = CommandFlow()
    /// Commands without a result that read presence or histories, or recover publications.
    private var pendingReads = 0
    private var isPerforming = false
    /// The broker knows the client.
    private var isRegistered = false
    /// Replies of this step, which leave together.
    private var output: [UInt8] = []
    private var pushes = PushOutput.held([], bytes: 0)
    /// For the ids of its events; `nil` if they have none.
    private var eventPositions: EventPositions?
    /// When the timer fired last.
    private var lastOutput: (isQueued: Bool, sent: UInt64) = (false, 0)
    private let timer = LoopTimer()

    /// - Parameters:
    ///   - number: of the connection.
    ///   - address: of the client; `nil` if it is not known.
    ///   - secret: for a client whose commands come with requests of their own; it names the client in them.
    ///   - sendsPings: whether it gets pings of the protocol.
    init(
        _ number: UInt64, from address: SocketAddress?, on gateway: LoopGateway, encoding: SessionEncoding,
        trustedUser: TrustedUser, secret: String? = nil, sendsPings: Bool = true
    ) {
        let rooms = gateway.rooms
        let hub = rooms.hub
        var settings = hub.clientSettings
        settings.sendsPings = sendsPings
        if let secret { (settings.session, settings.node) = (secret, hub.nodeName) }
        self.rooms = rooms
        self.loop = rooms.loop
        self.gateway = gateway
        self.connectionNumber = number
        self.address = address
        self.encoding = encoding
        self.client = RoomClient(
            identifier: RoomHub.text(hub.randomWords(2)), settings: settings,
            authority: RoomAccess(hub: hub, trustedUser: trustedUser), onlyReceives: encoding.isUnidirectional,
            now: Self.elapsed(rooms.loop))
    }

    private static func elapsed(_ loop: Loop) -> Duration { .nanoseconds(loop.now.nanoseconds) }

    private var now: RoomClient.Instant {
        RoomClient.Instant(
            elapsed: Self.elapsed(self.loop), unix: UInt64(clamping: Machine.wallClockMilliseconds() / 1000))
    }

    var isClosed: Bool { self.client.isClosed }

    /// For the limits of one client.
    private var clientKey: RoomClientKey? { RoomClientKey(user: self.client.user, address: self.address) }

    func start(_ connection: any RoomConnection) {
        self.connection = connection
        self.rooms.sessions[self.client.identifier] = self
        self.armTimer()
    }

    // MARK: Input

    /// Performs the commands of a message in order, as far as the turn's budget and the peer's reading allow; the rest
    /// follows, and nothing is read meanwhile.
    func received(_ message: [UInt8], encoding: ProtocolEncoding) {
        switch self.flow.received(CommandReader(message, encoding: encoding)) {
        case .perform: self.performCommands()
        case .overrun:
            assertionFailure("a message, though reading is paused")
            self.change { $0.close(.insufficientState) }
        case .ignore: break
        }
    }

    func receivedMalformedBytes() { self.change { $0.receivedMalformedBytes() } }

    /// A client that sends nothing: its connection begins with this request.
    /// - Parameter idLimit: of the ids of its events, in bytes; `nil` for events without ids.
    func connect(_ request: Command.ConnectRequest, idLimit: Int?) {
        let now = self.now
        self.change { client in
            client.received(Command(number: 1, .connect(request)), at: now)
            guard let idLimit else { return }
            // Those of rooms that neither the client nor its token names any more are forgotten.
            let channels = Set(request.subscriptions.map(\.channel)).union(client.grantedChannels)
            self.eventPositions = EventPositions(
                limit: idLimit, received: request.received.filter { channels.contains($0.key) })
        }
    }

    private func performCommands() {
        while true {
            let action = self.flow.next(within: self.limits) { command in
                // Without Redis, no room is entered soon, and the answer to a ping must be read.
                !self.rooms.broker.isAway && self.client.mustWait(command)
            }
            switch action {
            case .perform(let command):
                self.loop.spend(Self.commandWork)
                self.client.received(command, at: self.now)
                self.perform()
            case .reject:
                self.client.receivedMalformedBytes()
                self.perform()
            case .wait(let wait, let pausesReading):
                if pausesReading { self.connection?.pauseReading() }
                self.flush()
                switch wait {
                case .nextTurn: return self.loop.inNextTurn(self)
                case .output: return self.awaitProgress()
                case .room, .results: return
                }
            case .finish:
                self.flush()
                return self.armTimer()
            }
        }
    }

    private var limits: CommandFlow.Limits {
        CommandFlow.Limits(
            turnIsSpent: self.loop.budgetIsSpent,
            outputIsFull: self.output.count + self.queuedBytes >= Self.outputWatermark,
            resultsAreMissing: self.client.pendingCount >= Self.pendingLimit
                || self.pendingReads >= Self.pendingReadLimit || self.client.isConnecting)
    }

    private func resume(_ action: CommandFlow.ResumeAction) {
        switch action {
        case .perform(let resumesReading):
            if resumesReading { self.connection?.resumeReading() }
            self.performCommands()
        case .ignore: break
        }
    }

    func outputProgressed() {
        for subscription in self.subscriptions.values { self.rooms.outputProgressed(subscription) }
        switch self.flow.outputProgressed(isDrained: self.queuedBytes < Self.outputWatermark / 2) {
        case .resume(let action): self.resume(action)
        case .awaitProgress: self.awaitProgress()
        }
    }

    // MARK: Actions

    /// Applies an event that is no command.
    private func change(_ event: (inout RoomClient) -> Void) {
        event(&self.client)
        self.perform()
        self.flush()
        self.armTimer()
    }

    /// A result of an operation, which may come while actions are performed.
    private func completed(_ event: (inout RoomClient) -> Void) {
        guard !self.isPerforming else { return event(&self.client) }
        self.change(event)
        guard self.client.pendingCount < Self.pendingLimit / 2, self.pendingReads < Self.pendingReadLimit / 2,
            !self.client.isConnecting
        else { return }
        self.resume(self.flow.resultsArrived())
    }

    private func completed<Value>(
        _ number: UInt32, _ result: Result<Value, RoomBrokerError>, _ reply: (Value) -> Reply
    ) {
        switch result {
        case .success(let value): self.completed { $0.completed(reply(value)) }
        case .failure(let error): self.completed { $0.completed(.error(number: number, error.commandError)) }
        }
    }

    private func perform() {
        guard !self.isPerforming else { return }
        self.isPerforming = true
        defer { self.isPerforming = false }
        while let action = self.client.nextAction() {
            switch action {
            case .send(let reply): self.send(reply)
            case .join(let join): self.join(join)
            case .leave(let channel): self.leave(channel)
            case .publish(let number, let channel, let data, let info):
                self.publish(number, channel, Publication(data, info: info))
            case .presence(let number, let channel): self.presence(number, channel)
            case .presenceStats(let number, let channel): self.presenceStats(number, channel)
            case .history(let number, let request): self.history(number, request)
            case .register(let info): self.register(info)
            case .close(let disconnect): self.close(disconnect)
            }
        }
    }

    private func send(_ reply: Reply) {
        self.count(reply)
        switch self.encoding {
        case .commands(let encoding): reply.append(to: &self.output, encoding: encoding)
        case .lines, .events:
            guard let push = reply.unidirectional else { return }
            let framed = self.encoding.framed(push)
            self.output += self.eventPositions?.sent(reply).map { self.encoding.identified(framed, by: $0) } ?? framed
        }
    }

    private func register(_ info: ClientInfo) {
        let hub = self.rooms.hub
        if let former = self.clientKey.flatMap({ hub.clientRates.meters(of: $0) }) {
            self.client.meters.addPublications(of: former, at: self.now.elapsed)
        }
        let entry = UserRegistry.Entry(
            client: info.client, user: info.user, connection: self.connectionNumber, loop: self.gateway.index)
        if !info.user.isEmpty { self.gateway.live[self.connectionNumber]?.context.user = info.user }
        let limit = hub.currentSettings.maximumConnectionsPerUser
        guard hub.users.add(entry, limit: limit) else { return self.client.registered(false, at: self.now) }
        self.isRegistered = true
        guard let limit, !info.user.isEmpty else { return self.client.registered(true, at: self.now) }
        self.rooms.broker.register(client: info.client, user: info.user, limit: limit) { [weak self] isAllowed in
            guard let self else { return }
            let now = self.now
            self.completed { $0.registered(isAllowed, at: now) }
        }
    }

    private func join(_ join: RoomClient.Join) {
        let reads = join.recovery == nil ? 0 : 1
        self.pendingReads += reads
        let entry = LoopRooms.Entry(
            member: self, info: join.info, client: self.clientKey, isPositioned: join.isPositioned,
            usesDeltas: join.usesDeltas, filter: join.filter, recovery: join.recovery, rejectsLoss: join.rejectsLoss,
            limit: join.recoveryLimit
        ) { [self] result in
            self.pendingReads -= reads
            let now = self.now
            switch result {
            case .success(let joined):
                self.subscriptions[join.channel] = joined.subscription
                self.completed { $0.joined(join.channel, .success(joined.result), at: now) }
            case .failure(let error):
                let refusal: CommandError =
                    switch error {
                    case .full, .notMade: .limitExceeded
                    case .unrecoverablePosition: .unrecoverablePosition
                    case .notReady, .away: .internal
                    }
                self.completed { $0.joined(join.channel, .failure(refusal), at: now) }
            }
        }
        self.rooms.join(join.channel, entry)
    }

    /// Counts errors, and what the client recovers by this reply.
    private func count(_ reply: Reply) {
        switch reply {
        case .error(_, let error): self.rooms.hub.counters.addError(error)
        case .subscribe(let number, let result) where result.wasRecovering:
            self.count(result, of: self.client.channel(subscribedBy: number) ?? "")
        case .push(let channel, .subscribe(let result)): self.count(result, of: channel)
        case .connect(_, let result): for one in result.subscriptions { self.count(one.value, of: one.key) }
        default: break
        }
    }

    private func count(_ result: Reply.SubscribeResult, of channel: String) {
        guard let room = self.subscriptions[channel]?.room else { return }
        room.counters.add(recovery: result)
    }

    private func leave(_ channel: String) {
        guard let subscription = self.subscriptions.removeValue(forKey: channel) else { return }
        self.rooms.leave(subscription)
    }

    private func publish(_ number: UInt32, _ channel: String, _ publication: Publication) {
        let subscription = self.subscriptions[channel]
        self.with(channel, number) { shared, done in
            self.rooms.publish(RoomPublication(publication: publication), in: shared, by: subscription) { [self] in
                done()
                self.completed(number, $0) { _ in .publish(number: number) }
            }
        }
    }

    /// Uses a room until `done` is called. A room without members that keeps nothing is empty, not an error.
    /// - Parameter number: of the command, which is refused if the room would be one too many.
    private func with(
        _ channel: String, _ number: UInt32, _ body: (_ room: SharedRoom, _ done: @escaping () -> Void) -> Void
    ) {
        if let subscription = self.subscriptions[channel] { return body(subscription.room.shared) {} }
        do {
            let shared = try self.rooms.acquire(channel, for: self.clientKey)
            body(shared) { [hub = self.rooms.hub] in hub.release(shared) }
        } catch {
            self.completed { $0.completed(.error(number: number, .limitExceeded)) }
        }
    }

    private func presence(_ number: UInt32, _ channel: String) {
        self.with(channel, number) { room, done in
            self.pendingReads += 1
            self.rooms.broker.presence(of: room) { [self] in
                self.pendingReads -= 1
                done()
                if case .success(let clients) = $0 { self.loop.spend(TurnBudget.frame * clients.count) }
                self.completed(number, $0) { .presence(number: number, $0) }
            }
        }
    }

    private func presenceStats(_ number: UInt32, _ channel: String) {
        self.with(channel, number) { room, done in
            self.pendingReads += 1
            self.rooms.broker.presenceCounts(of: room) { [self] in
                self.pendingReads -= 1
                done()
                self.completed(number, $0) { .presenceStats(number: number, clients: $0.clients, users: $0.users) }
            }
        }
    }

    private func history(_ number: UInt32, _ request: Command.HistoryRequest) {
        self.with(request.channel, number) { room, done in
            self.pendingReads += 1
            self.rooms.broker.history(of: room, request, while: { [self] in !self.isClosed }) { [self] in
                self.pendingReads -= 1
                done()
                self.completed(number, $0) { page in
                    self.loop.spend(page.publications.reduce(0) { $0 + TurnBudget.frame + $1.data.bytes.count })
                    return .history(number: number, page.publications, page.position)
                }
            }
        }
    }

    // MARK: Output

    private func flush() {
        if !self.output.isEmpty {
            let replies = self.output
            self.output = []
            self.connection?.send(replies)
        }
        if self.client.isConnected, let held = self.pushes.release() { self.sendHeld(held) }
    }

    private func sendHeld(_ pushes: [Push]) {
        for push in pushes { self.write(push) }
        for subscription in self.subscriptions.values {
            subscription.updateBatchOutput()
            self.rooms.outputProgressed(subscription)
        }
    }

    private func armTimer() {
        guard self.connection != nil, let deadline = self.client.deadline(at: self.now) else {
            return self.loop.disarm(self.timer)
        }
        let (seconds, attoseconds) = deadline.components
        let instant = MonotonicInstant(nanoseconds: seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
        self.loop.arm(self.timer, at: instant, target: self)
    }

    // MARK: The end

    private func close(_ disconnect: Disconnect) {
        if let push = Reply.push(channel: "", .disconnect(disconnect)).unidirectional, self.encoding.isUnidirectional {
            self.output += self.encoding.framed(push)
        }
        self.flush()
        // The peer's answer to the Close must be read.
        if self.flow.close() { self.connection?.resumeReading() }
        self.rooms.hub.counters.addDisconnect(disconnect.code)
        self.connection?.close(disconnect)
    }

    /// The connection is over, or the client has ended it.
    func connectionEnded() {
        _ = self.flow.close()
        self.client.connectionEnded()
        self.perform()
        self.loop.disarm(self.timer)
        self.connection = nil
        guard self.rooms.sessions.removeValue(forKey: self.client.identifier) != nil else { return }
        self.keepRates()
        self.rooms.hub.users.remove(client: self.client.identifier)
        guard self.isRegistered, !self.client.user.isEmpty else { return }
        self.rooms.broker.unregister(client: self.client.identifier, user: self.client.user)
    }
}

extension RoomSession {
    /// The client's next connection begins with what this one has published.
    private func keepRates() {
        let now = self.now.elapsed
        guard let key = self.clientKey, !self.client.meters.isUnused(at: now) else { return }
        self.rooms.hub.clientRates.use(key, at: now) { $0.addPublications(of: self.client.meters, at: now) }
    }
}

/// Verbs of operators. On the loop.
extension RoomSession {
    /// Number of the connection in the REST interface.
    var number: UInt64 { self.connectionNumber }
    /// The user, empty if it is anonymous, and the client's identifier.
    var identity: (user: String, client: String) { (self.client.user, self.client.identifier) }
    /// Rooms that the client is in, in the order of their names.
    var channels: [String] { self.client.channels }

    func disconnect(_ disconnect: Disconnect) { self.change { $0.close(disconnect) } }

    func unsubscribe(_ channel: String, _ code: UnsubscribeCode) { self.change { $0.unsubscribe(channel, code) } }

    /// - Returns: why the client does not become a member.
    func subscribe(_ grant: SubscriptionGrant, recovering position: StreamPosition?) -> CommandError? {
        var error: CommandError?
        self.change { error = $0.subscribe(grant, recovering: position) }
        return error
    }

    func refresh(expiry: UInt64?, isExpired: Bool) {
        let now = self.now
        self.change { $0.refresh(expiry: expiry, isExpired: isExpired, at: now) }
    }

    func send(_ data: Payload) {
        guard !self.client.isClosed else { return }
        let message = self.encoding.message(.message(data), in: "")
        guard self.queuedBytes + message.payload.count <= self.rooms.hub.buffers.memberBacklog else {
            return self.change { $0.close(.slow) }
        }
        self.send(Push(message: message))
    }
}

extension RoomSession: RoomSubscriber {
    var takesMore: Bool { self.queuedBytes < self.rooms.hub.buffers.memberOutput }
    var queuedBytes: Int { self.pushes.heldBytes + (self.connection?.queuedBytes ?? 0) }
    var unconsumedBytes: Int { self.subscriptions.values.reduce(0) { $0 + $1.room.backlog(of: $1) } }

    func deliver(_ message: LoopMessage, to subscription: RoomSubscription) {
        let push =
            if subscription.usesDeltas, case .commands(let encoding) = self.encoding {
                subscription.take(message, encoding)
            } else {
                message.encoded(self.encoding)
            }
        self.send(Push(message: push, offset: message.offset, channel: subscription.room.name))
    }

    private func send(_ push: Push) {
        if !self.pushes.hold(push) { self.write(push) }
    }

    private func write(_ push: Push) {
        guard let id = self.eventPositions?.sentPublication(in: push.channel, offset: push.offset) else {
            self.connection?.send(push.message)
            return
        }
        self.connection?.send(self.encoding.identified(push.message.payload, by: id))
    }

    var batchOutput: BatchOutput? {
        guard self.pushes.isReleased, case .commands(let encoding) = self.encoding,
            let task = self.connection?.webSocket
        else { return nil }
        return BatchOutput(task: task, encoding: encoding)
    }

    func awaitProgress() { self.connection?.awaitProgress() }

    func backlogExceeded(_ subscription: RoomSubscription) {
        guard subscription.room.shared.policy.slowReaders != .disconnect else {
            return self.change { $0.close(.slow) }
        }
        self.change { $0.unsubscribe(subscription.room.name, .insufficient) }
    }

    func interrupted(_ subscription: RoomSubscription, at position: StreamPosition) {
        self.change { $0.unsubscribe(subscription.room.name, .insufficient) }
    }

    func pauseReading() {
        switch self.flow.roomPaused() {
        case .pauseReading: self.connection?.pauseReading()
        case .ignore: break
        }
    }

    func resumeReading() {
        switch self.flow.roomResumed() {
        case .resumeReading: self.connection?.resumeReading()
        case .awaitNextTurn: self.loop.inNextTurn(self)
        case .ignore: break
        }
    }
}

extension RoomSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let now = self.now
        let tookOutput = self.tookOutput()
        // A client that takes none of its output must still answer in time.
        let wasPaused = self.flow.timerFired()
        let mayAnswerLater = tookOutput || wasPaused
        self.change { $0.timerFired(at: now, mayAnswerLater: mayAnswerLater) }
    }

    /// Whether the client has taken some of the output that was queued at the last call: a ping may be behind it.
    private func tookOutput() -> Bool {
        let former = self.lastOutput
        self.lastOutput = (self.queuedBytes > 0, self.connection?.sentBytes ?? 0)
        return former.isQueued && self.lastOutput.sent > former.sent
    }
}

extension RoomSession: TurnEndTarget {
    func turnEnded() {}
    func nextTurnBegan() { self.resume(self.flow.nextTurnBegan()) }
}
