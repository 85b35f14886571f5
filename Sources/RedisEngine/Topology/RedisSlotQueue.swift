import DequeModule

/// Keeps the commands of one slot of a cluster in order while some of them must be sent again.
///
/// Commands are sent as they come. When one must be sent again, later ones are held back: the earliest is sent alone, and
/// after its answer the others follow together. Commands already sent when the earlier one came back cannot be held
/// back. Where a server executes it, it overtakes: commands with other keys of a slot that migrates, or with the same keys
/// if the cluster's state changed in between.
package struct RedisSlotQueue<Command: AnyObject> {
    package enum Action {
        /// Send these, in this order; report each with `answered` or `returned`.
        case send([Command])
        /// Call `pauseOver` after this time, which is the command's.
        case pause(Command, Duration)
        case none
    }

    private struct Entry {
        let number: UInt64
        let command: Command
        var pause: Duration?
        var isAlone = false
    }

    private enum Phase {
        /// Commands are sent as they come.
        case open
        /// The earliest one held is sent when no earlier one is unanswered.
        case holding
        /// The earliest one held waits for its pause.
        case pausing
        /// Only the command of this number is unanswered.
        case trying(UInt64)
        /// A command was answered after it was sent alone: the others follow.
        case releasing
    }

    private var phase = Phase.open
    private var lastNumber: UInt64 = 0
    /// Unanswered commands, in ascending order.
    private var sent: Deque<Entry> = []
    /// Commands held back, in ascending order.
    private var held: Deque<Entry> = []

    package init() {}

    package var isEmpty: Bool { self.sent.isEmpty && self.held.isEmpty }
    /// Whether a further command is held back.
    package var isHolding: Bool {
        if case .open = self.phase { false } else { true }
    }
    /// Commands that are held back, in their order.
    package var heldCommands: [Command] { self.held.map(\.command) }

    /// - Returns: whether the command is to be sent now; otherwise it is held back.
    package mutating func add(_ command: Command) -> Bool {
        self.lastNumber += 1
        let entry = Entry(number: self.lastNumber, command: command)
        guard case .open = self.phase else {
            // An earlier one is unanswered or held: its answer continues with this one.
            self.held.append(entry)
            return false
        }
        self.sent.append(entry)
        return true
    }

    /// The command has its result, and will not be sent again.
    package mutating func answered(_ command: Command) -> Action {
        guard let entry = self.takeSent(command) else { return .none }
        if case .trying(entry.number) = self.phase { self.phase = .releasing }
        return self.advance()
    }

    /// The command was not executed, and must be sent again.
    ///
    /// - Parameters:
    ///   - pause: before it is sent, unless an earlier command is answered meanwhile.
    ///   - isAlone: whether it goes to another server than the later ones, which follow after its answer only.
    package mutating func returned(_ command: Command, after pause: Duration?, isAlone: Bool) -> Action {
        guard var entry = self.takeSent(command) else { return .none }
        entry.pause = pause
        entry.isAlone = isAlone
        self.held.insert(entry, at: Self.position(of: entry.number, in: self.held))
        switch self.phase {
        case .open, .holding, .releasing: self.phase = .holding
        case .trying(entry.number): self.phase = .holding
        case .trying, .pausing: break
        }
        return self.advance()
    }

    /// The pause of the last action `pause` is over.
    package mutating func pauseOver() -> Action {
        guard case .pausing = self.phase, !self.held.isEmpty else { return .none }
        self.phase = .holding
        self.held[0].pause = nil
        return self.advance()
    }

    private mutating func advance() -> Action {
        guard let first = self.held.first else {
            if self.sent.isEmpty { self.phase = .open }
            return .none
        }
        switch self.phase {
        case .open, .pausing, .trying: return .none
        case .releasing where self.sent.isEmpty && !first.isAlone: return self.release()
        case .releasing: break
        case .holding:
            guard let pause = first.pause, self.isEarliest(first) else { break }
            self.phase = .pausing
            return .pause(first.command, pause)
        }
        guard self.isEarliest(first) else { return .none }
        self.held.removeFirst()
        self.sent.prepend(first)
        self.phase = .trying(first.number)
        return .send([first.command])
    }

    private func isEarliest(_ entry: Entry) -> Bool { self.sent.first.map { $0.number > entry.number } ?? true }

    /// Sends all that may follow each other.
    private mutating func release() -> Action {
        self.sent = Deque(self.held.prefix { !$0.isAlone })
        self.held.removeFirst(self.sent.count)
        if self.held.isEmpty { self.phase = .open }
        return .send(self.sent.map(\.command))
    }

    private mutating func takeSent(_ command: Command) -> Entry? {
        guard let index = self.sent.firstIndex(where: { $0.command === command }) else { return nil }
        return self.sent.remove(at: index)
    }

    /// Where an entry of this number belongs.
    private static func position(of number: UInt64, in entries: Deque<Entry>) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
