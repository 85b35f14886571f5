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
