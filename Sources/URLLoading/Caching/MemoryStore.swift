import Foundation

/// The memory part of a cache.
struct MemoryStore: Sendable {
    private struct Entry: Sendable {
        let response: CachedURLResponse
        let stored: Date
        let exchange: CachedExchange
    }

    /// Estimated size of a response's head, in bytes.
    private static let overhead = 256

    private var entries: [String: Entry] = [:]
    private var order = LRUOrder()
    private(set) var capacity: Int

    init(capacity: Int) { self.capacity = max(0, capacity) }

    /// In bytes.
    var usage: Int { self.order.total }

    mutating func response(for key: String) -> CachedURLResponse? {
        self.order.use(key)
        return self.entries[key]?.response
    }

    /// The exchange of `response`, if it is stored here.
    func exchange(of response: CachedURLResponse, for key: String) -> CachedExchange? {
        self.entries[key].flatMap { $0.response === response ? $0.exchange : nil }
    }

    func has(_ key: String) -> Bool { self.entries[key] != nil }

    /// A response larger than the capacity is not stored, and removes the one it would replace.
    mutating func store(_ response: CachedURLResponse, for key: String, stored: Date, exchange: CachedExchange) {
        let cost = response.data.count + Self.overhead
        guard cost <= self.capacity else {
            self.remove(key)
            return
        }
        self.entries[key] = Entry(response: response, stored: stored, exchange: exchange)
        self.order.set(key, cost: cost)
        self.shrink()
    }

    mutating func remove(_ key: String) {
        self.entries[key] = nil
        self.order.remove(key)
    }

    mutating func removeAll() {
        self.entries = [:]
        self.order = LRUOrder()
    }

    mutating func remove(since date: Date) {
        for (key, entry) in self.entries where entry.stored >= date { self.remove(key) }
    }

    mutating func setCapacity(_ capacity: Int) {
        self.capacity = max(0, capacity)
        self.shrink()
    }

    private mutating func shrink() {
        for key in self.order.evict(to: self.capacity) { self.entries[key] = nil }
    }
}

/// Keys with their costs, in least-recently-used order.
struct LRUOrder: Sendable {
    private struct Use: Sendable {
        let key: String
        let sequence: Int
    }

    private var costs: [String: Int] = [:]
    private var lastSequence: [String: Int] = [:]
    /// All uses in order. Only the last use of each key counts; earlier ones are skipped.
    private var uses: [Use] = []
    private var firstUse = 0
    private var sequence = 0
    private(set) var total = 0

    var keys: [String] { Array(self.costs.keys) }

    /// Adds the key or changes its cost, and marks it as used.
    mutating func set(_ key: String, cost: Int) {
        self.total += cost - (self.costs[key] ?? 0)
        self.costs[key] = cost
        self.use(key)
    }

    /// Marks the key as used. Does nothing for an unknown key.
    mutating func use(_ key: String) {
        guard self.costs[key] != nil else { return }
        self.sequence += 1
        self.lastSequence[key] = self.sequence
        self.uses.append(Use(key: key, sequence: self.sequence))
        self.compact()
    }

    mutating func remove(_ key: String) {
        guard let cost = self.costs.removeValue(forKey: key) else { return }
        self.lastSequence[key] = nil
        self.total -= cost
    }

    /// Removes the least recently used keys until the total cost is at most `limit`.
    /// - Returns: the removed keys.
    mutating func evict(to limit: Int) -> [String] {
        var evicted: [String] = []
        while self.total > limit, self.firstUse < self.uses.count {
            let use = self.uses[self.firstUse]
            self.firstUse += 1
            guard self.lastSequence[use.key] == use.sequence else { continue }
            self.remove(use.key)
            evicted.append(use.key)
        }
        self.compact()
        return evicted
    }

    /// Keeps the number of recorded uses within twice the number of keys.
    private mutating func compact() {
        guard self.uses.count > 2 * self.costs.count + 64 else { return }
        self.uses = self.uses[self.firstUse...].filter { self.lastSequence[$0.key] == $0.sequence }
        self.firstUse = 0
    }
}
