import DequeModule

/// The connections of one pool key, and the queue of exchanges that wait for one. There are never more connections than
/// the limit, including those being opened.
package struct HostConnections<Connection: AnyObject, Element> {
    package enum Placement {
        case use(Connection)
        case open
        /// Close this idle connection and open another.
        case replace(Connection)
        /// All connections are busy.
        case wait
    }

    package let limit: Int
    /// Connections being opened or busy.
    package private(set) var occupied = 0
    /// The most recently used is last, and is reused first: its server is the least likely to have closed it.
    package private(set) var idle: [Connection] = []
    package var waitQueue = WaitQueue<Element>()

    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// No connections, and no waiting exchanges.
    package var isEmpty: Bool { self.occupied == 0 && self.idle.isEmpty && self.waitQueue.isEmpty }

    /// Finds a connection for an exchange, and counts it as occupied. On `.wait` nothing has changed.
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

    /// Removes the first waiting exchange if there is a connection for it.
    package mutating func next() -> (Element, Placement)? {
        guard let needsFresh = self.waitQueue.nextNeedsFresh else { return nil }
        let placement = self.acquire(needsFresh: needsFresh)
        if case .wait = placement { return nil }
        return self.waitQueue.popFirst().map { ($0, placement) }
    }

    /// An exchange has ended and its connection can be reused.
    package mutating func freed(_ connection: Connection) {
        self.occupied -= 1
        self.idle.append(connection)
    }

    /// An idle or occupied connection was closed.
    package mutating func closed(_ connection: Connection) {
        if !self.removeIdle(connection) { self.occupied -= 1 }
    }

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

/// A queue by priority, then by arrival.
package struct WaitQueue<Element> {
    private struct Entry {
        let number: UInt64
        let element: Element
        let needsFresh: Bool
    }

    private struct Lane {
        let priority: Float
        var entries: Deque<Entry>
    }

    /// Highest priority first; no lane is empty.
    private var lanes: [Lane] = []

    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { self.count == 0 }

    /// Whether the first element needs a new connection; `nil` if the queue is empty.
    package var nextNeedsFresh: Bool? { self.lanes.first?.entries.first?.needsFresh }

    /// - Parameter inFront: ahead of all elements of the same priority.
    package mutating func add(
        _ element: Element, number: UInt64, priority: Float, needsFresh: Bool, inFront: Bool = false
    ) {
        let entry = Entry(number: number, element: element, needsFresh: needsFresh)
        let index = self.lanes.firstIndex { $0.priority <= priority } ?? self.lanes.count
        if index == self.lanes.count || self.lanes[index].priority != priority {
            self.lanes.insert(Lane(priority: priority, entries: []), at: index)
        }
        if inFront { self.lanes[index].entries.prepend(entry) } else { self.lanes[index].entries.append(entry) }
        self.count += 1
    }

    package mutating func popFirst() -> Element? {
        guard !self.lanes.isEmpty, let entry = self.lanes[0].entries.popFirst() else { return nil }
        if self.lanes[0].entries.isEmpty { self.lanes.removeFirst() }
        self.count -= 1
        return entry.element
    }

    /// - Returns: the removed element, and whether it needs a new connection; `nil` if it is not in the queue.
    @discardableResult
    package mutating func remove(_ number: UInt64) -> (element: Element, needsFresh: Bool)? {
        for lane in self.lanes.indices {
            guard let index = self.lanes[lane].entries.firstIndex(where: { $0.number == number }) else { continue }
            let entry = self.lanes[lane].entries.remove(at: index)
            if self.lanes[lane].entries.isEmpty { self.lanes.remove(at: lane) }
            self.count -= 1
            return (entry.element, entry.needsFresh)
        }
        return nil
    }

    /// Removes all elements and returns them in order.
    package mutating func removeAll() -> [Element] {
        defer { self = WaitQueue() }
        return self.lanes.flatMap { $0.entries.map(\.element) }
    }
}

/// Identifies an exchange in the wait queue of a host.
struct Waiter: Hashable {
    let key: PoolKey
    let number: UInt64
}
