import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A task in a chat room, whatever its protocol.
protocol RoomMember: ChatSubscriber, OutputSource {
    associatedtype Task: RelayTask

    /// Released when it ends.
    var task: Task? { get }
    var rooms: LoopRooms { get }
    /// Membership in the room; `nil` before the task joins and after it leaves.
    var subscription: ChatSubscription? { get set }
    /// Beginning of the message that is being received.
    var unfinished: [UInt8] { get set }
}

extension RoomMember {
    var takesMore: Bool { self.queuedBytes < ChatRoom.outputWatermark }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }
    var unconsumedBytes: Int { self.subscription.map { $0.room.backlog(of: $0) } ?? 0 }

    func pauseReading() { self.task?.beginStall() }
    func resumeReading() { self.task?.endStall() }
    func awaitProgress() { self.task?.awaitProgress() }

    func outputProgressed() {
        if let subscription = self.subscription { self.rooms.outputProgressed(subscription) }
    }

    /// Sends the message that is complete now to the others.
    func publish(_ kind: MessageKind) {
        guard let subscription = self.subscription else { return }
        let message = ChatMessage(kind: kind, bytes: self.unfinished)
        self.unfinished = []
        self.rooms.publish(message, by: subscription)
    }

    func leave() {
        guard let subscription = self.subscription.take() else { return }
        self.unfinished = []
        self.rooms.leave(subscription)
    }
}

/// One WebSocket in a chat room.
final class ChatMember: WebSocketRelay {
    private(set) var task: WebSocketTask?
    private let room: String
    let rooms: LoopRooms
    var unfinished: [UInt8] = []
    var subscription: ChatSubscription?

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
        guard self.subscription != nil else { return }
        self.unfinished.append(bytes)
        if mark.endsMessage { self.publish(mark.kind) }
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.leave()
        return true
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.leave()
        self.task = nil
    }
}

extension ChatMember: RoomMember {
    func deliver(_ message: ChatMessage) {
        guard let task = self.task else { return }
        message.bytes.withRawSpan { task.sendFrame(message.kind, startsMessage: true, endsMessage: true, $0) }
    }

    func backlogExceeded() {
        self.leave()
        self.task?.close(.tryAgainLater, reason: Array("reading too slowly for this room".utf8))
    }
}

/// A byte stream in a chat room. The route's framing converts between its bytes and the room's messages.
final class StreamChatMember: TransportConsumer {
    private(set) var task: StreamTask?
    private let room: String
    let rooms: LoopRooms
    private var toMessages: StreamToMessages
    private var toStream: MessagesToStream
    private let messageLimit: Int
    private let framing: Framing
    var unfinished: [UInt8] = []
    var subscription: ChatSubscription?

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
        guard self.subscription != nil else { return }
        guard piece.byteCount <= self.messageLimit - self.unfinished.count else { return self.fail() }
        self.unfinished.append(piece)
        if mark.endsMessage { self.publish(mark.kind) }
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

    func transportEnded(_ end: TransportEnd) {
        self.leave()
        self.task = nil
    }

    /// A peer that breaks the framing, or cannot keep up with the room, is reset.
    private func fail() {
        self.leave()
        self.task?.reset()
    }
}

extension StreamChatMember: RoomMember {
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

    func backlogExceeded() {
        self.fail()
    }
}
