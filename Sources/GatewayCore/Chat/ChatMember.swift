import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One WebSocket in a chat room.
final class ChatMember: WebSocketRelay {
    /// Bytes queued in a member's connection above which messages stay in the room, stored once for all members.
    static let outputWatermark = 64 << 10

    /// Released when the task ends.
    private var task: WebSocketTask?
    private let room: String
    private let rooms: LoopRooms
    private var unfinished: [UInt8] = []
    /// Membership in the room; `nil` before it joins and after it leaves.
    private var subscription: ChatSubscription?

    init(room: String, rooms: LoopRooms) {
        self.room = room
        self.rooms = rooms
    }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.subscription = self.rooms.join(self, room: self.room)
    }

    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        // A removed member may still receive input for a while.
        guard let subscription = self.subscription else { return }
        self.unfinished.append(bytes)
        guard mark.endsMessage else { return }
        let message = ChatMessage(kind: mark.kind, bytes: self.unfinished)
        self.unfinished = []
        self.rooms.publish(message, by: subscription)
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.leave()
        return true
    }

    func outputProgressed() {
        if let subscription = self.subscription { self.rooms.outputProgressed(subscription) }
    }

    var unconsumedBytes: Int {
        self.subscription.map { $0.room.backlog(of: $0) } ?? 0
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.leave()
        self.task = nil
    }

    private func leave() {
        guard let subscription = self.subscription else { return }
        self.subscription = nil
        self.unfinished = []
        self.rooms.leave(subscription)
    }
}

extension ChatMember: ChatSubscriber {
    var takesMore: Bool { self.queuedBytes < Self.outputWatermark }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }

    func deliver(_ message: ChatMessage) {
        guard let task = self.task else { return }
        message.bytes.withRawSpan { task.sendFrame(message.kind, startsMessage: true, endsMessage: true, $0) }
    }

    func awaitProgress() {
        self.task?.awaitProgress()
    }

    func backlogExceeded() {
        self.leave()
        self.task?.close(.tryAgainLater, reason: Array("reading too slowly for this room".utf8))
    }

    func pauseReading() {
        guard let task = self.task else { return }
        task.record.stallBegins(at: task.loop.now)
        task.pauseReading()
    }

    func resumeReading() {
        guard let task = self.task else { return }
        task.record.stallEnded(at: task.loop.now)
        task.resumeReading()
    }
}

/// A byte stream in a chat room. The route's framing converts between its bytes and the room's messages.
final class StreamChatMember: TransportConsumer {
    /// Released when the task ends.
    private var task: StreamTask?
    private let room: String
    private let rooms: LoopRooms
    private var toMessages: StreamToMessages
    private var toStream: MessagesToStream
    private let messageLimit: Int
    private let framing: Framing
    private var unfinished: [UInt8] = []
    /// Membership in the room; `nil` before it joins and after it leaves.
    private var subscription: ChatSubscription?

    init(room: String, rooms: LoopRooms, settings: TunnelSettings) {
        self.room = room
        self.rooms = rooms
        self.messageLimit = settings.maximumMessageSize ?? TunnelSettings.defaultMaximumMessageSize
        self.framing = settings.framing
        self.toMessages = StreamToMessages(settings.framing, messageLimit: self.messageLimit)
        self.toStream = MessagesToStream(settings.framing, messageLimit: self.messageLimit)
    }

    func start(_ task: StreamTask) {
        self.task = task
        self.subscription = self.rooms.join(self, room: self.room)
        task.attach(self)
        task.resumeReading()
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var offset = 0
        while let subscription = self.subscription, let task = self.task {
            // The rest is offered again when the room takes more, or in the next turn.
            guard !subscription.isPaused, !task.loop.budgetIsSpent else { return offset }
            let start = offset
            let step = self.toMessages.next(bytes.bytes, at: &offset)
            task.loop.spend(TurnBudget.frame + offset - start)
            switch step {
            case .exhausted: return offset
            case .chunk(let range, let mark): self.publish(bytes.bytes.extracting(range), mark)
            case .replacement(let made, let mark): made.withRawSpan { self.publish($0, mark) }
            case .violation: self.fail()
            }
        }
        return bytes.byteCount
    }

    private func publish(_ piece: RawSpan, _ mark: ChunkPosition) {
        guard let subscription = self.subscription else { return }
        guard piece.byteCount <= self.messageLimit - self.unfinished.count else { return self.fail() }
        self.unfinished.append(piece)
        guard mark.endsMessage else { return }
        let message = ChatMessage(kind: mark.kind, bytes: self.unfinished)
        self.unfinished = []
        self.rooms.publish(message, by: subscription)
    }

    func inputClosed() {
        switch self.toMessages.finish() {
        case .replacement(let made, let mark)?: made.withRawSpan { self.publish($0, mark) }
        case .violation?: return self.fail()
        case .chunk?, .exhausted?, nil: break
        }
        self.leave()
        self.task?.close(linger: .seconds(5))
    }

    func outputProgressed() {
        if let subscription = self.subscription { self.rooms.outputProgressed(subscription) }
    }

    var unconsumedBytes: Int {
        self.subscription.map { $0.room.backlog(of: $0) } ?? 0
    }

    func transportEnded(_ end: TransportEnd) {
        self.leave()
        self.task = nil
    }

    /// A peer that breaks the framing, or cannot keep up with the room, is reset.
    private func fail() {
        self.leave()
        self.task?.reset()
    }

    private func leave() {
        guard let subscription = self.subscription else { return }
        self.subscription = nil
        self.unfinished = []
        self.rooms.leave(subscription)
    }
}

extension StreamChatMember: ChatSubscriber {
    var takesMore: Bool { self.queuedBytes < ChatMember.outputWatermark }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }

    func deliver(_ message: ChatMessage) {
        guard let task = self.task else { return }
        var made: [UInt8] = []
        let delivery = message.bytes.withRawSpan { self.toStream.take($0, .whole(message.kind), into: &made) }
        switch delivery {
        case .unchanged: message.bytes.withRawSpan { task.enqueue($0) }
        case .rewritten: made.withRawSpan { task.enqueue($0) }
        case .violation:
            // The message cannot be expressed in this member's framing: it is skipped, and the member stays.
            self.toStream = MessagesToStream(self.framing, messageLimit: self.messageLimit)
        }
    }

    func awaitProgress() {
        self.task?.awaitProgress()
    }

    func backlogExceeded() {
        self.fail()
    }

    func pauseReading() {
        guard let task = self.task else { return }
        task.record.stallBegins(at: task.loop.now)
        task.pauseReading()
    }

    func resumeReading() {
        guard let task = self.task else { return }
        task.record.stallEnded(at: task.loop.now)
        task.resumeReading()
    }
}
