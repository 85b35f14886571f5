import ByteKernels
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One WebSocket in a chat room.
final class ChatMember: WebSocketRelay {
    /// Bytes that may wait for a member who does not read; one who is slower is sent away with 1013, so that it does
    /// not hold up the room.
    static let backlogLimit = 4 << 20

    /// Given up when the task ends, which it always does.
    private var task: WebSocketTask?
    private let room: String
    private let floor: ChatFloor
    private var unfinished: [UInt8] = []
    private var present = false

    init(room: String, floor: ChatFloor) {
        self.room = room
        self.floor = floor
    }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.present = true
        self.floor.join(self, room: self.room)
    }

    func hear(_ message: ChatMessage) {
        guard self.present, let task = self.task else { return }
        guard task.queuedBytes <= Self.backlogLimit else {
            self.leave()
            return task.close(.tryAgainLater, reason: Array("reading too slowly for this room".utf8))
        }
        message.bytes.withRawSpan { task.sendFrame(message.kind, startsMessage: true, endsMessage: true, $0) }
    }

    func webSocketOpened() {}

    func received(_ mark: FrameMark, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        self.unfinished.append(bytes)
        guard mark.endsMessage else { return }
        let message = ChatMessage(kind: mark.kind, bytes: self.unfinished)
        self.unfinished = []
        self.floor.say(message, by: self, room: self.room)
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.leave()
        return true
    }

    func outputProgressed() {}

    func webSocketEnded(_ end: WebSocketEnd) {
        self.leave()
        self.unfinished = []
        self.task = nil
    }

    private func leave() {
        guard self.present else { return }
        self.present = false
        self.floor.leave(self, room: self.room)
    }
}
