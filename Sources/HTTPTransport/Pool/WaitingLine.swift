import NIOCore

/// Who waits, by priority and then by arrival.
package struct WaitingLine<Waiter> {
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
            guard let place = self.lanes[lane].entries.firstIndex(where: { $0.number == number }) else { continue }
            let entry = self.lanes[lane].entries.remove(at: place)
            if self.lanes[lane].entries.isEmpty { self.lanes.remove(at: lane) }
            self.count -= 1
            return (entry.waiter, entry.needsFresh)
        }
        return nil
    }

    /// Everybody, in order; nobody waits any more.
    package mutating func removeAll() -> [Waiter] {
        defer { self = WaitingLine() }
        return self.lanes.flatMap { $0.entries.map(\.waiter) }
    }
}
