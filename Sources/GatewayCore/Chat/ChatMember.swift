import ByteKernels
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One WebSocket in a chat room.
final class ChatMember: WebSocketRelay {
    /// Bytes that may wait in a member's connection before what follows waits in the room, which keeps it once for all.
    static let outputWatermark = 64 << 10

    /// Given up when the task ends, which it always does.
    private var task: WebSocketTask?
    private let room: String
    private let floor: ChatFloor
    private var unfinished: [UInt8] = []
    /// While it is a member of the room.
    private var seat: ChatSeat?

    init(room: String, floor: ChatFloor) {
        self.room = room
        self.floor = floor
    }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.seat = self.floor.join(self, room: self.room)
    }

    func webSocketOpened() {}

    func received(_ mark: FrameMark, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        // One that was sent away may go on for a while.
        guard let seat = self.seat else { return }
        self.unfinished.append(bytes)
        guard mark.endsMessage else { return }
        let message = ChatMessage(kind: mark.kind, bytes: self.unfinished)
        self.unfinished = []
        self.floor.say(message, by: seat)
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.leave()
        return true
    }

    func outputProgressed() {
        if let seat = self.seat { self.floor.outputProgressed(seat) }
    }

    var heldBytes: Int {
        self.seat.map { $0.room.backlog(of: $0) } ?? 0
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.leave()
        self.task = nil
    }

    private func leave() {
        guard let seat = self.seat else { return }
        self.seat = nil
        self.unfinished = []
        self.floor.leave(seat)
    }
}

extension ChatMember: ChatHearer {
    var takesMore: Bool { self.queuedBytes < Self.outputWatermark }
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }

    func hear(_ message: ChatMessage) {
        guard let task = self.task else { return }
        message.bytes.withRawSpan { task.sendFrame(message.kind, startsMessage: true, endsMessage: true, $0) }
    }

    func awaitProgress() {
        self.task?.awaitProgress()
    }

    func fellBehind() {
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
