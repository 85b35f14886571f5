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
