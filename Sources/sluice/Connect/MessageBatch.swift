import SessionTasks

/// Takes the messages that have come out of a WebSocket task in one go. On its loop.
///
/// A journey to the loop and back costs more than a small message; so those that are there come along with the first.
/// What the task keeps for nobody is bounded, and so is this.
final class MessageBatch {
    /// Most messages of one batch.
    private static let limit = 256

    private let task: WebSocketTask
    private var taken: [Received] = []
    private var completion: (([Received]) -> Void)?
    /// Whether an answer that comes now comes while it is being asked for.
    private var isAsking = false
    private var isWithdrawing = false

    init(_ task: WebSocketTask) {
        self.task = task
    }

    /// - Parameter completion: called once; at once if a message is there.
    func fill(_ completion: @escaping ([Received]) -> Void) {
        self.completion = completion
        while self.taken.count < Self.limit {
            let before = self.taken.count
            self.isAsking = true
            let number = self.task.receive { self.answered($0) }
            self.isAsking = false
            if case .end? = self.taken.last { return self.deliver() }
            guard self.taken.count == before else { continue }
            // Nothing more is there: the question is taken back, unless it is the one to wait with.
            guard before > 0 else { return }
            self.isWithdrawing = true
            self.task.withdrawReceive(number)
            return self.deliver()
        }
        self.deliver()
    }

    private func answered(_ result: Result<WebSocketTask.Message, TaskFailure>) {
        guard !self.isWithdrawing else { return }
        switch result {
        case .success(.string(let text)): self.taken.append(.text(text))
        case .success(.data(let bytes)): self.taken.append(.data(bytes))
        case .failure: self.taken.append(.end)
        }
        if !self.isAsking { self.deliver() }
    }

    private func deliver() {
        let completion = self.completion
        self.completion = nil
        completion?(self.taken)
    }
}
