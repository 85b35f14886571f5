import Foundation

/// The part of a cache that is in memory.
struct MemoryStore: Sendable {
    private struct Entry: Sendable {
        let response: CachedURLResponse
        let stored: Date
        let exchange: CachedExchange
    }

    /// What an entry costs beside its content, in bytes: about what the response's head takes.
    private static let overhead = 256

    private var entries: [String: Entry] = [:]
    private var order = UsageOrder()
    private(set) var capacity: Int

    init(capacity: Int) { self.capacity = max(0, capacity) }

    /// In bytes.
    var usage: Int { self.order.total }

    mutating func response(for key: String) -> CachedURLResponse? {
        self.order.use(key)
        return self.entries[key]?.response
    }

    /// What brought `response`, if that is kept here.
    func exchange(of response: CachedURLResponse, for key: String) -> CachedExchange? {
        self.entries[key].flatMap { $0.response === response ? $0.exchange : nil }
    }

    func has(_ key: String) -> Bool { self.entries[key] != nil }

    /// What is larger than the whole capacity is not kept, nor is what it would replace.
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
        self.order = UsageOrder()
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

/// Keys with what each costs, and the order in which they were last used.
struct UsageOrder: Sendable {
    private struct Use: Sendable {
        let key: String
        let turn: Int
    }

    private var costs: [String: Int] = [:]
    private var turns: [String: Int] = [:]
    /// Every use in its order. Those that a later one of the same key overtook are skipped when met.
    private var uses: [Use] = []
    private var firstUse = 0
    private var turn = 0
    private(set) var total = 0

    var keys: [String] { Array(self.costs.keys) }

    func cost(of key: String) -> Int? { self.costs[key] }

    /// Adds the key, or gives it another cost; it counts as used.
    mutating func set(_ key: String, cost: Int) {
        self.total += cost - (self.costs[key] ?? 0)
        self.costs[key] = cost
        self.use(key)
    }

    /// Nothing happens for a key that is not there.
    mutating func use(_ key: String) {
        guard self.costs[key] != nil else { return }
        self.turn += 1
        self.turns[key] = self.turn
        self.uses.append(Use(key: key, turn: self.turn))
        self.tidy()
    }

    mutating func remove(_ key: String) {
        guard let cost = self.costs.removeValue(forKey: key) else { return }
        self.turns[key] = nil
        self.total -= cost
    }

    /// Takes out those that have not been used for longest until the rest costs `limit` at most.
    /// - Returns: the keys taken out.
    mutating func evict(to limit: Int) -> [String] {
        var evicted: [String] = []
        while self.total > limit, self.firstUse < self.uses.count {
            let use = self.uses[self.firstUse]
            self.firstUse += 1
            guard self.turns[use.key] == use.turn else { continue }
            self.remove(use.key)
            evicted.append(use.key)
        }
        self.tidy()
        return evicted
    }

    /// Keeps what is written down of uses within twice the number of keys.
    private mutating func tidy() {
        guard self.uses.count > 2 * self.costs.count + 64 else { return }
        self.uses = self.uses[self.firstUse...].filter { self.turns[$0.key] == $0.turn }
        self.firstUse = 0
    }
}
