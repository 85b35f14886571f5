import ByteKernels
import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One WebSocket that speaks Centrifuge's client protocol, and may be in many rooms.
final class RoomSession: WebSocketRelay {
    /// Bytes queued in the connection above which no further command is performed.
    private static let outputWatermark = WebSocketTask.outputWatermark
    /// Commands of a message that are performed before the connection waits for the next turn.
    private static let commandWork = TurnBudget.frame * 4

    private(set) var task: WebSocketTask?
    let rooms: LoopRooms
    private let loop: Loop
    private let context: ConnectionContext
    private let encoding: ProtocolEncoding
    private var client: RoomClient
    private var subscriptions: [String: RoomSubscription] = [:]
    /// Beginning of the message that is being received.
    private var unfinished: [UInt8] = []
    /// Rest of a message whose commands are not all performed.
    private var commands: CommandReader?
    /// Replies of this step, which leave together.
    private var output: [UInt8] = []
    /// Reasons why nothing is read.
    private var pauses = 0
    private let timer = LoopTimer()

    init(_ context: ConnectionContext, encoding: ProtocolEncoding, trustedUser: String?) {
        let rooms = context.gateway.rooms
        let hub = rooms.hub
        self.rooms = rooms
        self.loop = rooms.loop
        self.context = context
        self.encoding = encoding
        self.client = RoomClient(
            identifier: RoomHub.text(hub.randomWords(2)), settings: hub.currentSettings.client,
            authority: RoomAccess(hub: hub, trustedUser: trustedUser), now: Self.elapsed(rooms.loop))
    }

    private static func elapsed(_ loop: Loop) -> Duration { .nanoseconds(loop.now.nanoseconds) }

    private var now: RoomClient.Instant {
        RoomClient.Instant(
            elapsed: Self.elapsed(self.loop), unix: UInt64(clamping: Machine.wallClockMilliseconds() / 1000))
    }

    var identifier: String { self.client.identifier }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.rooms.sessions[self.client.identifier] = self
        self.armTimer()
    }

    // MARK: Input

    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        guard !self.client.isClosed else { return }
        self.unfinished.append(bytes)
        guard mark.endsMessage else { return }
        let message = self.unfinished
        self.unfinished = []
        // Text frames are checked already.
        guard self.encoding == .protobuf || mark.kind == .text || message.isValidUTF8 else {
            return self.change { $0.receivedMalformedBytes() }
        }
        self.commands = CommandReader(message, encoding: self.encoding)
        self.performCommands()
    }

    /// Performs commands in order, as far as the turn's budget and the peer's reading allow.
    private func performCommands() {
        while var reader = self.commands {
            if self.loop.budgetIsSpent {
                self.flush()
                self.pauseReading()
                return self.loop.inNextTurn(self)
            }
            guard self.output.count + self.queuedBytes < Self.outputWatermark else {
                self.flush()
                self.pauseReading()
                return self.waitForOutput()
            }
            self.loop.spend(Self.commandWork)
            do {
                let command = try reader.next()
                self.commands = command == nil || self.client.isClosed ? nil : reader
                if let command { self.client.received(command, at: self.now) }
            } catch {
                self.commands = nil
                self.client.receivedMalformedBytes()
            }
            self.perform()
        }
        self.flush()
        self.armTimer()
    }

    private var waitsForOutput = false

    private func waitForOutput() {
        self.waitsForOutput = true
        self.task?.awaitProgress()
    }

    private func goOnWithCommands() {
        guard self.commands != nil else { return }
        self.resumeReading()
        self.performCommands()
    }

    func outputProgressed() {
        for subscription in self.subscriptions.values { self.rooms.outputProgressed(subscription) }
        guard self.waitsForOutput, self.queuedBytes < Self.outputWatermark / 2 else {
            if self.waitsForOutput { self.task?.awaitProgress() }
            return
        }
        self.waitsForOutput = false
        self.goOnWithCommands()
    }

    // MARK: Actions

    /// Applies an event that is no command.
    private func change(_ event: (inout RoomClient) -> Void) {
        event(&self.client)
        self.perform()
        self.flush()
        self.armTimer()
    }

    private func perform() {
        while let action = self.client.nextAction() {
            switch action {
            case .send(let reply): reply.append(to: &self.output, encoding: self.encoding)
            case .join(let join): self.join(join)
            case .leave(let channel): self.leave(channel)
            case .publish(let number, let channel, let data, let info):
                self.publish(number, channel, Publication(data, info: info))
            case .presence(let number, let channel): self.complete(self.presence(number, channel))
            case .presenceStats(let number, let channel): self.complete(self.presenceStats(number, channel))
            case .history(let number, let request): self.complete(self.history(number, request))
            case .register(let info): self.register(info)
            case .close(let disconnect): self.close(disconnect)
            }
        }
    }

    private func complete(_ reply: Reply) { self.client.completed(reply) }

    private func register(_ info: ClientInfo) {
        let hub = self.rooms.hub
        let entry = UserRegistry.Entry(
            client: info.client, user: info.user, connection: self.context.identifier,
            loop: self.context.gateway.index)
        guard hub.users.add(entry, limit: hub.currentSettings.maximumConnectionsPerUser) else {
            return self.client.close(.connectionLimit)
        }
    }

    private func join(_ join: RoomClient.Join) {
        do {
            let joined = try self.rooms.join(
                self, room: join.channel, info: join.info, isPositioned: join.isPositioned, recovering: join.recovery,
                limit: join.recoveryLimit)
            self.subscriptions[join.channel] = joined.subscription
            self.count(joined.result, of: join)
            self.client.joined(join.channel, .success(joined.result), at: self.now)
        } catch {
            self.client.joined(join.channel, .failure(.limitExceeded), at: self.now)
        }
    }

    private func count(_ result: RoomClient.JoinResult, of join: RoomClient.Join) {
        guard join.recovery != nil else { return }
        let counters = self.rooms.hub.counters
        counters.add(result.publications.count, to: .recovered)
        if !result.isRecovered { counters.add(to: .unrecovered) }
    }

    private func leave(_ channel: String) {
        guard let subscription = self.subscriptions.removeValue(forKey: channel) else { return }
        self.rooms.leave(subscription)
    }

    private func publish(_ number: UInt32, _ channel: String, _ publication: Publication) {
        let subscription = self.subscriptions[channel]
        let hub = self.rooms.hub
        let shared = subscription?.room.shared ?? hub.acquire(channel)
        _ = self.rooms.publish(publication, in: shared, by: subscription)
        if subscription == nil { hub.release(shared) }
        self.complete(.publish(number: number))
    }

    /// Reads a room; one that nobody is in and that keeps nothing is read as empty.
    private func read<Value>(_ channel: String, _ body: (SharedRoom) -> Value) -> Value {
        if let subscription = self.subscriptions[channel] { return body(subscription.room.shared) }
        let hub = self.rooms.hub
        let shared = hub.acquire(channel)
        defer { hub.release(shared) }
        return body(shared)
    }

    private func presence(_ number: UInt32, _ channel: String) -> Reply {
        let clients = self.read(channel, \.presence).all
        self.loop.spend(TurnBudget.frame * clients.count)
        return .presence(number: number, clients)
    }

    private func presenceStats(_ number: UInt32, _ channel: String) -> Reply {
        let presence = self.read(channel, \.presence)
        return .presenceStats(number: number, clients: presence.clientCount, users: presence.userCount)
    }

    private func history(_ number: UInt32, _ request: Command.HistoryRequest) -> Reply {
        let now = Self.elapsed(self.loop)
        let result = self.read(request.channel) { room in Result { try room.history(request, now: now) } }
        guard case .success(let (publications, position)) = result else {
            return .error(number: number, .unrecoverablePosition)
        }
        self.loop.spend(publications.reduce(0) { $0 + TurnBudget.frame + $1.data.bytes.count })
        return .history(number: number, publications, position)
    }

    // MARK: Output

    private func flush() {
        guard !self.output.isEmpty else { return }
        let kind: MessageKind = self.encoding == .json ? .text : .binary
        let message = self.output
        self.output = []
        if let task = self.task {
            message.withRawSpan { _ = task.sendFrame(kind, startsMessage: true, endsMessage: true, $0) }
        }
    }

    private func armTimer() {
        guard self.task != nil, let deadline = self.client.deadline(at: self.now) else {
            return self.loop.disarm(self.timer)
        }
        let nanoseconds =
            deadline.components.seconds &* 1_000_000_000 &+ deadline.components.attoseconds / 1_000_000_000
        self.loop.arm(self.timer, at: MonotonicInstant(nanoseconds: nanoseconds), target: self)
    }

    // MARK: The end

    private func close(_ disconnect: Disconnect) {
        self.flush()
        self.commands = nil
        self.rooms.hub.counters.add(to: .disconnects)
        let reason = Array(disconnect.reason.utf8.prefix(123))
        self.task?.close(CloseCode(rawValue: disconnect.code), reason: reason)
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.connectionEnded()
        return true
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.connectionEnded()
        self.loop.disarm(self.timer)
        self.task = nil
        guard self.rooms.sessions.removeValue(forKey: self.client.identifier) != nil else { return }
        self.rooms.hub.users.remove(client: self.client.identifier)
    }

    private func connectionEnded() {
        self.commands = nil
        self.client.connectionEnded()
        self.perform()
    }
}

/// Verbs of operators. On the loop.
extension RoomSession {
    func disconnect(_ disconnect: Disconnect) { self.change { $0.close(disconnect) } }

    func unsubscribe(_ channel: String, _ code: UnsubscribeCode) { self.change { $0.unsubscribe(channel, code) } }

    func subscribe(_ grant: SubscriptionGrant, recovering position: StreamPosition?) {
        self.change { _ = $0.subscribe(grant, recovering: position) }
    }

    func refresh(expiry: UInt64?, isExpired: Bool) {
        let now = self.now
        self.change { $0.refresh(expiry: expiry, isExpired: isExpired, at: now) }
    }

    func send(_ data: Payload) {
        guard !self.client.isClosed else { return }
        Reply.push(channel: "", .message(data)).append(to: &self.output, encoding: self.encoding)
        self.flush()
    }
}

extension RoomSession: RoomSubscriber {
    var takesMore: Bool { self.queuedBytes < LoopRoom.outputWatermark }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }
    var unconsumedBytes: Int { self.subscriptions.values.reduce(0) { $0 + $1.room.backlog(of: $1) } }

    func deliver(_ message: LoopMessage, to subscription: RoomSubscription) {
        guard let task = self.task else { return }
        if case .join(let info) = message.message.content, info.client == self.identifier { return }
        if case .leave(let info) = message.message.content, info.client == self.identifier { return }
        message.encoded(self.encoding).withRawSpan {
            _ = task.sendFrame(
                self.encoding == .json ? .text : .binary, startsMessage: true, endsMessage: true, $0)
        }
    }

    func awaitProgress() { self.task?.awaitProgress() }

    func backlogExceeded(_ subscription: RoomSubscription) {
        guard subscription.room.shared.policy.slowReaders != .disconnect else {
            return self.change { $0.close(.slow) }
        }
        self.change { $0.unsubscribe(subscription.room.name, .insufficient) }
    }

    func pauseReading() {
        self.pauses += 1
        if self.pauses == 1 { self.task?.beginStall() }
    }

    func resumeReading() {
        self.pauses -= 1
        if self.pauses == 0 { self.task?.endStall() }
    }
}

extension RoomSession: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let now = self.now
        self.change { $0.timerFired(at: now) }
    }
}

extension RoomSession: TurnEndTarget {
    func turnEnded() {}

    func nextTurnBegan() { self.goOnWithCommands() }
}

extension RoomSession: EndpointRelay {}

extension ProtocolEncoding {
    /// In the order of preference.
    static let subprotocols = ["centrifuge-protobuf", "centrifuge-json"]

    /// Protobuf if the request's subprotocol or its query (`format=protobuf`) asks for it; else JSON.
    init(of matched: MatchedRequest) {
        let first = matched.request.subprotocols.first { Self.subprotocols.contains($0) }
        let items = matched.match.query?.split(separator: "&") ?? []
        let isAsked = items.contains("format=protobuf") || items.contains("cf_protocol=protobuf")
        self = first == "centrifuge-protobuf" || isAsked ? .protobuf : .json
    }
}
