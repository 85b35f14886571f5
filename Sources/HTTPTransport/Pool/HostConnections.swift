import NIOCore

/// The connections of one key and who waits for them: decides who gets which. At no time are there more connections
/// than the limit, those being opened included.
package struct HostConnections<Connection: AnyObject, Waiter> {
    package enum Placement {
        case use(Connection)
        case open
        /// One is to be opened in place of this one, which rested and is closed.
        case replace(Connection)
        /// All are busy.
        case wait
    }

    package let limit: Int
    /// Being opened, or serving somebody.
    package private(set) var occupied = 0
    /// The one that rested last is at the end, and is used first: its server is the least likely to have lost patience.
    package private(set) var idle: [Connection] = []
    package var waitQueue = WaitQueue<Waiter>()

    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Nothing is left to remember.
    package var isEmpty: Bool { self.occupied == 0 && self.idle.isEmpty && self.waitQueue.isEmpty }

    /// Finds a connection for somebody, and counts it as occupied. On `.wait` nothing has changed.
    package mutating func acquire(needsFresh: Bool) -> Placement {
        if !needsFresh, let connection = self.idle.popLast() {
            self.occupied += 1
            return .use(connection)
        }
        if self.occupied + self.idle.count < self.limit {
            self.occupied += 1
            return .open
        }
        guard !self.idle.isEmpty else { return .wait }
        self.occupied += 1
        return .replace(self.idle.removeFirst())
    }

    /// The next one in the line, if there is a connection for it now.
    package mutating func next() -> (Waiter, Placement)? {
        guard let needsFresh = self.waitQueue.nextNeedsFresh else { return nil }
        let placement = self.acquire(needsFresh: needsFresh)
        if case .wait = placement { return nil }
        return self.waitQueue.popFirst().map { ($0, placement) }
    }

    /// An exchange is over and its connection can serve another.
    package mutating func freed(_ connection: Connection) {
        self.occupied -= 1
        self.idle.append(connection)
    }

    /// A connection is gone, be it idle or occupied.
    package mutating func closed(_ connection: Connection) {
        if !self.removeIdle(connection) { self.occupied -= 1 }
    }

    /// No connection came about.
    package mutating func openingFailed() {
        self.occupied -= 1
    }

    /// - Returns: whether it was idle.
    package mutating func removeIdle(_ connection: Connection) -> Bool {
        guard let index = self.idle.firstIndex(where: { $0 === connection }) else { return false }
        self.idle.remove(at: index)
        return true
    }
}

/// Who waits, by priority and then by arrival.
package struct WaitQueue<Waiter> {
    private struct Entry {
        let number: UInt64
        let waiter: Waiter
        let needsFresh: Bool
    }

    private struct Lane {
        let priority: Float
        var entries: CircularBuffer<Entry>
    }

    /// The highest priority first; none is empty.
    private var lanes: [Lane] = []

    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { self.count == 0 }

    /// Whether the next one wants a connection of its own.
    package var nextNeedsFresh: Bool? { self.lanes.first?.entries.first?.needsFresh }

    /// - Parameter inFront: before all others of its priority.
    package mutating func add(
        _ waiter: Waiter, number: UInt64, priority: Float, needsFresh: Bool, inFront: Bool = false
    ) {
        let entry = Entry(number: number, waiter: waiter, needsFresh: needsFresh)
        let index = self.lanes.firstIndex { $0.priority <= priority } ?? self.lanes.count
        if index == self.lanes.count || self.lanes[index].priority != priority {
            self.lanes.insert(Lane(priority: priority, entries: []), at: index)
        }
        if inFront { self.lanes[index].entries.prepend(entry) } else { self.lanes[index].entries.append(entry) }
        self.count += 1
    }

    package mutating func popFirst() -> Waiter? {
        guard !self.lanes.isEmpty, let entry = self.lanes[0].entries.popFirst() else { return nil }
        if self.lanes[0].entries.isEmpty { self.lanes.removeFirst() }
        self.count -= 1
        return entry.waiter
    }

    /// Takes one out of the line.
    /// - Returns: who it was, and whether it wanted a connection of its own; `nil` if it does not wait.
    @discardableResult
    package mutating func remove(_ number: UInt64) -> (waiter: Waiter, needsFresh: Bool)? {
        for lane in self.lanes.indices {
            guard let index = self.lanes[lane].entries.firstIndex(where: { $0.number == number }) else { continue }
            let entry = self.lanes[lane].entries.remove(at: index)
            if self.lanes[lane].entries.isEmpty { self.lanes.remove(at: lane) }
            self.count -= 1
            return (entry.waiter, entry.needsFresh)
        }
        return nil
    }

    /// Everybody, in order; nobody waits any more.
    package mutating func removeAll() -> [Waiter] {
        defer { self = WaitQueue() }
        return self.lanes.flatMap { $0.entries.map(\.waiter) }
    }
}

/// Names one who waits for a connection.
struct Waiter: Hashable {
    let key: PoolKey
    let number: UInt64
}
