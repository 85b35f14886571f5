import DequeModule

/// Messages, pings and a close that wait for their turn: for the opening handshake, or for the transport's queue to go
/// down.
struct OutgoingMessages {
    typealias Completion = (Result<Void, TaskFailure>) -> Void

    enum Item {
        case message(WebSocketTask.Message, Completion)
        case ping([UInt8], Completion)
        case close(UInt16?, [UInt8])
    }

    struct Entry {
        let number: UInt64
        let item: Item

        /// Bytes of payload.
        fileprivate var count: Int {
            switch self.item {
            case .message(let message, _): message.count
            case .ping(let payload, _), .close(_, let payload): payload.count
            }
        }
    }

    /// Given to the transport; done when it has sent up to `doneAt`.
    private struct Begun {
        let doneAt: UInt64
        let completion: Completion
    }

    private var waiting: Deque<Entry> = []
    private var begun: Deque<Begun> = []
    /// Payload of everything that waits.
    private(set) var waitingBytes = 0

    var isEmpty: Bool {
        self.waiting.isEmpty
    }

    var waitingCount: Int {
        self.waiting.count
    }

    /// Whether something given to the transport is not sent yet.
    var hasBegun: Bool {
        !self.begun.isEmpty
    }

    mutating func append(_ entry: Entry) {
        self.waiting.append(entry)
        self.waitingBytes += entry.count
    }

    mutating func popFirst() -> Entry? {
        guard let entry = self.waiting.popFirst() else { return nil }
        self.waitingBytes -= entry.count
        return entry
    }

    mutating func began(doneAt: UInt64, _ completion: @escaping Completion) {
        self.begun.append(Begun(doneAt: doneAt, completion: completion))
    }

    mutating func popDone(sentBytes: UInt64) -> Completion? {
        guard let first = self.begun.first, first.doneAt <= sentBytes else { return nil }
        self.begun.removeFirst()
        return first.completion
    }

    /// Takes one entry out that has not begun.
    mutating func withdraw(_ number: UInt64) -> Completion? {
        guard let index = self.waiting.firstIndex(where: { $0.number == number }) else { return nil }
        let entry = self.waiting.remove(at: index)
        self.waitingBytes -= entry.count
        switch entry.item {
        case .message(_, let completion), .ping(_, let completion): return completion
        case .close: return nil
        }
    }

    /// Everything that will not happen any more.
    mutating func removeAll() -> [Completion] {
        let unfinished = self.begun.map(\.completion)
        let unbegun = self.waiting.compactMap { entry -> Completion? in
            switch entry.item {
            case .message(_, let completion), .ping(_, let completion): completion
            case .close: nil
            }
        }
        self.begun = []
        self.waiting = []
        self.waitingBytes = 0
        return unfinished + unbegun
    }
}
