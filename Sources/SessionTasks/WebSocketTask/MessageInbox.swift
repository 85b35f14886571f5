import DequeModule

/// Messages that came and receivers that wait, first come first served. Never both at once.
struct MessageInbox {
    typealias Completion = (Result<WebSocketTask.Message, TaskFailure>) -> Void

    struct Receiver {
        let number: UInt64
        let completion: Completion
    }

    enum Order {
        case deliver(Completion, Result<WebSocketTask.Message, TaskFailure>)
    }

    /// Messages kept for nobody before reading stops; their bytes are held to the limit as well.
    static let messageLimit = 64

    private var messages: Deque<WebSocketTask.Message> = []
    private var receivers: Deque<Receiver> = []
    private(set) var bytes = 0
    /// The last message was given out, and nobody has asked for the next one since.
    private var isInHand = false
    private var failure: TaskFailure?

    var messageCount: Int {
        self.messages.count
    }

    /// Whether the peer should wait: nobody takes what is here.
    func isFull(limit: Int) -> Bool {
        self.messages.count >= Self.messageLimit || self.bytes >= limit
    }

    mutating func append(_ message: WebSocketTask.Message) {
        self.messages.append(message)
        self.bytes += message.count
    }

    /// Whether somebody has yet to come to the end of what arrived: messages wait, or the last one is being looked at.
    var isBehind: Bool {
        !self.messages.isEmpty || self.isInHand
    }

    mutating func append(_ receiver: Receiver) {
        self.isInHand = false
        self.receivers.append(receiver)
    }

    /// Fails those who wait and all who come later; messages that are here are still given out first.
    mutating func fail(_ failure: TaskFailure) {
        if self.failure == nil { self.failure = failure }
    }

    mutating func nextOrder() -> Order? {
        guard let receiver = self.receivers.first else { return nil }
        if let message = self.messages.popFirst() {
            self.bytes -= message.count
            self.receivers.removeFirst()
            self.isInHand = self.receivers.isEmpty
            return .deliver(receiver.completion, .success(message))
        }
        guard let failure = self.failure else { return nil }
        self.receivers.removeFirst()
        return .deliver(receiver.completion, .failure(failure))
    }

    mutating func withdraw(_ number: UInt64) -> Completion? {
        guard let index = self.receivers.firstIndex(where: { $0.number == number }) else { return nil }
        return self.receivers.remove(at: index).completion
    }
}
