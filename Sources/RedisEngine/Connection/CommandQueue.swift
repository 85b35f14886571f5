import ByteKernels
import DequeModule

/// Unanswered commands of a connection in the order of their replies, with the bytes that were not taken for sending.
struct CommandQueue: Sendable {
    enum Kind: Equatable {
        case command(RedisCommandID)
        /// Answered by a push for each of these channels, in this order, or by one error.
        case subscription(RedisCommandID, RedisSubscription, isSubscribed: Bool, channels: [[UInt8]])
        /// `ASKING` before a command.
        case asking
        case ping
    }

    private struct Entry {
        let kind: Kind
        /// Channels of a subscription that pushes have confirmed.
        var confirmedCount = 0
        /// Number of the last byte, counted from the connection's beginning.
        let end: Int
        let size: Int
    }

    /// A deadline that no later command has earlier or at the same time.
    private struct Deadline {
        let entry: Int
        let instant: Duration
        let kind: Kind
    }

    private var entries: Deque<Entry> = []
    private var firstEntry = 0
    /// In ascending order: replies are in order, so the deadline of a command is also one of those before it.
    private var deadlines: Deque<Deadline> = []
    private var output: [UInt8] = []
    private var outputStart = 0
    private var takenCount = 0
    private(set) var byteCount = 0

    var count: Int { self.entries.count }
    var hasOutput: Bool { self.outputStart < self.output.count }
    /// The oldest command that was sent: the next reply is its own.
    var oldest: Kind? {
        guard let entry = self.entries.first, entry.end <= self.takenCount else { return nil }
        return entry.kind
    }
    /// Earliest deadline, and the command that has it.
    var deadline: (instant: Duration, kind: Kind)? { self.deadlines.first.map { ($0.instant, $0.kind) } }

    mutating func append(_ command: RedisCommand, _ kind: Kind, deadline: Duration) {
        let start = self.output.count
        self.output.append(redis: command)
        let size = self.output.count - start
        self.byteCount += size
        let end = self.takenCount + self.output.count - self.outputStart
        while let last = self.deadlines.last, last.instant >= deadline { self.deadlines.removeLast() }
        self.deadlines.append(Deadline(entry: self.firstEntry + self.entries.count, instant: deadline, kind: kind))
        self.entries.append(Entry(kind: kind, end: end, size: size))
    }

    /// The oldest command is answered.
    mutating func removeOldest() {
        guard let entry = self.entries.popFirst() else { return }
        self.byteCount -= entry.size
        if self.deadlines.first?.entry == self.firstEntry { self.deadlines.removeFirst() }
        self.firstEntry += 1
    }

    /// A push confirms the next channel of the oldest command.
    /// - Returns: the command, if this was its last channel; `nil` also if the push belongs to no command.
    mutating func confirm(
        _ subscription: RedisSubscription, isSubscribed: Bool, channel: [UInt8]?
    ) -> RedisCommandID? {
        guard case .subscription(let id, subscription, isSubscribed, let channels) = self.oldest,
            channels[self.entries[0].confirmedCount] == channel
        else { return nil }
        self.entries[0].confirmedCount += 1
        guard self.entries[0].confirmedCount == channels.count else { return nil }
        self.removeOldest()
        return id
    }

    /// Takes bytes for sending, in the order of the commands.
    mutating func takeOutput(limit: Int) -> [UInt8] {
        let count = min(limit, self.output.count - self.outputStart)
        guard count > 0 else { return [] }
        self.takenCount += count
        if self.outputStart == 0, count == self.output.count {
            let all = self.output
            self.output = []
            return all
        }
        let part = Array(self.output[self.outputStart..<(self.outputStart + count)])
        self.outputStart += count
        // Moving the rest costs no more than what was taken since the last time.
        if self.outputStart * 2 >= self.output.count {
            self.output = Array(self.output[self.outputStart...])
            self.outputStart = 0
        }
        return part
    }

    /// Ends all commands.
    mutating func abandon() -> RedisAbandonedCommands {
        var abandoned = RedisAbandonedCommands()
        for entry in self.entries {
            let id: RedisCommandID
            switch entry.kind {
            case .command(let command), .subscription(let command, _, _, _): id = command
            case .asking, .ping: continue
            }
            // A server executes complete commands only.
            if entry.end > self.takenCount { abandoned.unsent.append(id) } else { abandoned.uncertain.append(id) }
        }
        self = CommandQueue()
        return abandoned
    }
}
