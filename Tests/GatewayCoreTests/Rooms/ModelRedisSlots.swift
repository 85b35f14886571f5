import RedisEngine

/// Which of the two servers of a Redis Cluster has which slot. Both have one store: while a slot migrates, each of its keys
/// is at one of them, and servers answer as redis-server 7.0 does.
struct ModelRedisSlots {
    private struct Migration {
        /// Keys that the next server has, or will create.
        var moved: Set<String> = []
    }

    /// Slots that have moved from the server that had them at first.
    private var moved: Set<Int> = []
    private var migrations: [Int: Migration] = [:]

    static func slot(of key: String) -> Int { RedisKeySlot.of(Array(key.utf8)) }

    private func owner(of slot: Int) -> Int { (slot < 8192) == self.moved.contains(slot) ? 1 : 0 }

    private func redirection(_ word: String, _ slot: Int, to server: Int) -> String {
        "\(word) \(slot) 10.3.0.\(server + 1):6379"
    }

    // MARK: Commands

    /// - Returns: the error that a server answers a command with; `nil` if it executes it.
    mutating func refusal(
        of keys: [String], at server: Int, isAsking: Bool, exists: (String) -> Bool
    ) -> String? {
        guard let slot = keys.first.map(Self.slot) else { return nil }
        let owner = self.owner(of: slot)
        guard let migration = self.migrations[slot] else {
            return server == owner ? nil : self.redirection("MOVED", slot, to: owner)
        }
        let (tryAgain, present) = ("TRYAGAIN Multiple keys request during rehashing of slot", keys.filter(exists))
        if server == owner {
            let own = present.count { !migration.moved.contains($0) }
            if own == keys.count { return nil }
            return own > 0 ? tryAgain : self.redirection("ASK", slot, to: 1 - owner)
        }
        guard isAsking else { return self.redirection("MOVED", slot, to: owner) }
        guard keys.count == 1 || present.count == keys.count && migration.moved.isSuperset(of: keys) else {
            return tryAgain
        }
        self.migrations[slot]?.moved.formUnion(keys)
        return nil
    }

    /// The same of a command for a channel, which stays with the former server until the migration ends.
    func refusal(ofChannel channel: String, at server: Int) -> String? {
        let slot = Self.slot(of: channel)
        let owner = self.owner(of: slot)
        return server == owner ? nil : self.redirection("MOVED", slot, to: owner)
    }

    // MARK: Migrations

    func isMigrating(_ slot: Int) -> Bool { self.migrations[slot] != nil }
    func hasMoved(_ key: String) -> Bool {
        self.migrations[Self.slot(of: key)]?.moved.contains(key) ?? false
    }
    mutating func begin(_ slot: Int) { self.migrations[slot] = Migration() }
    mutating func move(_ key: String) { self.migrations[Self.slot(of: key)]?.moved.insert(key) }

    /// The next server has the slot.
    mutating func end(_ slot: Int) {
        guard self.migrations.removeValue(forKey: slot) != nil else { return }
        self.moved.formSymmetricDifference([slot])
    }

    /// The reply to `CLUSTER SHARDS`.
    var shards: ModelReply {
        .array(
            [0, 1].map { server in
                var ranges: [ModelReply] = []
                var start: Int?
                for slot in 0...RedisKeySlot.count {
                    let isOwn = slot < RedisKeySlot.count && self.owner(of: slot) == server
                    if isOwn, start == nil { start = slot }
                    guard !isOwn, let first = start.take() else { continue }
                    ranges += [.integer(first), .integer(slot - 1)]
                }
                let node = ModelReply.map([
                    ("role", .blob("master")), ("port", .integer(6379)), ("endpoint", .blob("10.3.0.\(server + 1)")),
                ])
                return .map([("slots", .array(ranges)), ("nodes", .array([node]))])
            })
    }
}
