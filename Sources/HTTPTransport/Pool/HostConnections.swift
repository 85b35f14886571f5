import DequeModule

/// Carries several exchanges at a time.
package protocol MultiplexedConnection: AnyObject {
    /// Whether one more exchange can begin now.
    var acceptsStream: Bool { get }
    /// Whether it carries none.
    var isIdle: Bool { get }
    /// Whether its server allows no exchange now.
    var isBlocked: Bool { get }
    /// Whether it is not known yet how many exchanges it accepts.
    var isStarting: Bool { get }
    /// Whether that was known once.
    var hasStarted: Bool { get }
}

/// Whether the connections to a server carry one exchange or many.
package enum ConnectionSharing: Sendable {
    /// Known when the first connection is open: TLS offers both protocols. Others wait for it, because they may join it.
    case unknown
    /// HTTP/1.1.
    case exclusive
    /// HTTP/2.
    case multiplexed
}

/// The connections of one pool key, and the queue of exchanges that wait for one. There are never more connections than
/// the limit, including those being opened.
package struct HostConnections<Connection: AnyObject, Shared: MultiplexedConnection, Element> {
    package enum Placement {
        case use(Connection)
        /// Begin another stream on this connection.
        case join(Shared)
        case open
        /// Close this idle connection and open another.
        case replace(Connection)
        case replaceShared(Shared)
        /// All connections are busy, or one is being opened that may be joined.
        case wait
    }

    package let limit: Int
    package private(set) var sharing: ConnectionSharing
    /// Connections being opened or busy, and all shared ones.
    package private(set) var occupied = 0
    /// Connections being opened.
    package private(set) var opening = 0
    /// Those of suspended exchanges: no others wait for them.
    private var held = 0
    /// Connections that carry many exchanges, or none, and accept more.
    package private(set) var shared: [Shared] = []
    /// The most recently used is last, and is reused first: its server is the least likely to have closed it.
    package private(set) var idle: [Connection] = []
    /// The last connection ended before it was known how many exchanges it accepts: exchanges do not wait for one failure
    /// after the other.
    private var startsFail = false
    package var waitQueue = WaitQueue<Element>()

    package init(limit: Int, sharing: ConnectionSharing = .exclusive) {
        self.limit = max(1, limit)
        self.sharing = sharing
    }

    /// Whether the server allows no exchange on a connection now: another connection would not change that.
    package var isBlocked: Bool { self.shared.contains(where: \.isBlocked) }

    /// No connections, and no waiting exchanges.
    package var isEmpty: Bool { self.occupied == 0 && self.idle.isEmpty && self.waitQueue.isEmpty }

    /// Finds a connection for an exchange, and counts it as occupied. On `.wait` nothing has changed.
    package mutating func acquire(needsFresh: Bool) -> Placement {
        if !needsFresh, let connection = self.idle.popLast() {
            self.occupied += 1
            return .use(connection)
        }
        if !needsFresh, let connection = self.shared.first(where: \.acceptsStream) {
            self.startsFail = false
            return .join(connection)
        }
        if !needsFresh, self.isBlocked { return .wait }
        if !needsFresh, !self.startsFail {
            if self.opening > self.held, self.sharing != .exclusive { return .wait }
            if self.shared.contains(where: \.isStarting) { return .wait }
        }
        if self.occupied + self.idle.count < self.limit {
            self.occupied += 1
            self.opening += 1
            return .open
        }
        return self.replaceIdle()
    }

    private mutating func replaceIdle() -> Placement {
        if !self.idle.isEmpty {
            self.occupied += 1
            self.opening += 1
            return .replace(self.idle.removeFirst())
        }
        guard let index = self.shared.firstIndex(where: \.isIdle) else { return .wait }
        self.opening += 1
        return .replaceShared(self.shared.remove(at: index))
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

    /// An exclusive connection is open, and occupied.
    package mutating func opened() {
        self.opening -= 1
        self.sharing = .exclusive
    }

    /// A connection is open that exchanges can share.
    package mutating func opened(_ connection: Shared) {
        self.opening -= 1
        self.sharing = .multiplexed
        self.shared.append(connection)
    }

    /// A shared connection was closed or accepts no more exchanges. A second call does nothing.
    /// - Parameter isDiscarded: by this side, which says nothing about the server.
    package mutating func closed(_ connection: Shared, isDiscarded: Bool = false) {
        guard let index = self.shared.firstIndex(where: { $0 === connection }) else { return }
        self.shared.remove(at: index)
        self.occupied -= 1
        if !connection.hasStarted, !isDiscarded { self.startsFail = true }
    }

    /// The exchange of an opening is suspended, or no more so.
    package mutating func openingHeld(_ isHeld: Bool) {
        self.held += isHeld ? 1 : -1
    }

    package mutating func openingFailed() {
        self.openingCancelled()
        // Exchanges do not wait for one failure after the other.
        if self.sharing == .unknown { self.sharing = .exclusive }
    }

    /// The opening ended for another reason than the server.
    package mutating func openingCancelled() {
        self.opening -= 1
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

    /// - Parameters:
    ///   - number: of the order in which elements first came.
    ///   - inFront: ahead of all elements of the same priority that came later.
    package mutating func add(
        _ element: Element, number: UInt64, priority: Float, needsFresh: Bool, inFront: Bool = false
    ) {
        let entry = Entry(number: number, element: element, needsFresh: needsFresh)
        let index = self.lanes.firstIndex { $0.priority <= priority } ?? self.lanes.count
        if index == self.lanes.count || self.lanes[index].priority != priority {
            self.lanes.insert(Lane(priority: priority, entries: []), at: index)
        }
        if inFront {
            let entries = self.lanes[index].entries
            self.lanes[index].entries.insert(entry, at: entries.firstIndex { $0.number > number } ?? entries.endIndex)
        } else {
            self.lanes[index].entries.append(entry)
        }
        self.count += 1
    }

    /// Removes the first element, if `condition` allows it.
    package mutating func popFirst(where condition: (Element) -> Bool) -> Element? {
        guard let first = self.lanes.first?.entries.first, condition(first.element) else { return nil }
        return self.popFirst()
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

    /// In the order in which they are served.
    package var elements: [Element] { self.lanes.flatMap { $0.entries.map(\.element) } }

    /// Removes all elements and returns them in order.
    package mutating func removeAll() -> [Element] {
        defer { self = WaitQueue() }
        return self.elements
    }
}

/// Identifies an exchange in the wait queue of a host.
struct Waiter: Hashable {
    let key: PoolKey
    let number: UInt64
}
