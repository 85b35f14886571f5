import DequeModule

/// Messages of one room, in order, until each loop with members has taken them.
///
/// Nothing is kept for loops without members.
struct MessageLog {
    private struct Cursor {
        var members = 0
        /// Number of the next message to take.
        var next: UInt64
    }

    private var messages: Deque<RoomMessage> = []
    /// Number of the first message in `messages`.
    private var first: UInt64 = 1
    /// Loops with members.
    private var cursors: [Int: Cursor] = [:]

    /// Number of the next message.
    var end: UInt64 { self.first + UInt64(self.messages.count) }
    var memberCount: Int { self.cursors.values.reduce(0) { $0 + $1.members } }
    var hasMembers: Bool { !self.cursors.isEmpty }

    mutating func addMember(onLoop loop: Int) {
        var cursor = self.cursors[loop] ?? Cursor(next: self.end)
        cursor.members += 1
        self.cursors[loop] = cursor
    }

    /// What a loop has not taken is dropped with its last member.
    mutating func removeMember(onLoop loop: Int) {
        guard let cursor = self.cursors[loop] else { return }
        self.cursors[loop] = cursor.members > 1 ? Cursor(members: cursor.members - 1, next: cursor.next) : nil
        self.trim()
    }

    /// - Returns: the loops with members, each with the message's cost.
    mutating func append(_ message: RoomMessage) -> [(loop: Int, cost: Int)] {
        self.messages.append(message)
        return self.loops(taking: message.cost)
    }

    /// The loops with members, each with `cost`.
    func loops(taking cost: Int) -> [(loop: Int, cost: Int)] { self.cursors.keys.map { ($0, cost) } }

    /// Takes messages for a loop in order, up to a total cost of `limit` bytes, at least one.
    mutating func take(forLoop loop: Int, upTo limit: Int) -> (messages: [RoomMessage], cost: Int, hasMore: Bool) {
        guard var cursor = self.cursors[loop] else { return ([], 0, false) }
        var messages: [RoomMessage] = []
        var cost = 0
        while cost < limit || messages.isEmpty, cursor.next < self.end {
            let message = self.messages[Int(cursor.next - self.first)]
            messages.append(message)
            cost += message.cost
            cursor.next += 1
        }
        self.cursors[loop] = cursor
        let hasMore = cursor.next < self.end
        if !hasMore { self.trim() }
        return (messages, cost, hasMore)
    }

    /// Removes messages that all loops have taken.
    private mutating func trim() {
        let least = self.cursors.values.reduce(self.end) { min($0, $1.next) }
        let count = Int(least - self.first)
        guard count > 0 else { return }
        if count == self.messages.count { self.messages.removeAll() } else { self.messages.removeFirst(count) }
        self.first = least
    }
}
