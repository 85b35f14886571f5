import DequeModule

/// The last publications of one room, and their position in its stream.
package struct RoomHistory: Sendable {
    package enum RequestError: Error, Equatable {
        /// The history does not reach back to the position, or has another epoch.
        case unrecoverablePosition
    }

    private struct Entry: Sendable {
        let publication: Publication
        let cost: Int
    }

    /// Offset of the newest publication, and the epoch.
    package private(set) var position: StreamPosition
    private var entries: Deque<Entry> = []
    /// Publications up to this offset may be missing. Of those after it, only removed ones are.
    private var floor: UInt64 = 0
    /// Cost of all entries in bytes.
    package private(set) var cost = 0
    /// When the entries expire; `nil` without entries.
    package private(set) var expiry: Duration?

    /// Memory of an entry besides its data, in bytes.
    private static let overhead = 256

    package init(epoch: String) {
        self.position = StreamPosition(offset: 0, epoch: epoch)
    }

    /// A history that another node began.
    /// - Parameters:
    ///   - position: of the newest publication.
    ///   - publications: those that are kept, the oldest first.
    ///   - floor: offset up to which publications may be missing; of those after it, only removed ones are.
    package init(
        position: StreamPosition, publications: [Publication], floor: UInt64, policy: RoomPolicy, now: Duration
    ) {
        self.position = position
        self.floor = floor
        for publication in publications { self.keep(publication, policy: policy, now: now) }
    }

    /// The entries expire at this time at the latest.
    package mutating func limitExpiry(to latest: Duration) {
        if let expiry = self.expiry { self.expiry = min(expiry, latest) }
    }

    package var count: Int { self.entries.count }

    /// Gives a publication the next offset, and keeps it as the policy says.
    /// - Parameters:
    ///   - offset: that another node gave it, later than the newest; those between were removed.
    ///   - now: time since any fixed instant.
    package mutating func append(
        _ publication: Publication, at offset: UInt64? = nil, policy: RoomPolicy, now: Duration
    ) -> Publication {
        self.expire(now)
        self.position.offset = offset ?? self.position.offset + 1
        var publication = publication
        publication.offset = self.position.offset
        self.keep(publication, policy: policy, now: now)
        return publication
    }

    private mutating func keep(_ publication: Publication, policy: RoomPolicy, now: Duration) {
        let entry = Entry(publication: publication, cost: publication.data.bytes.count + Self.overhead)
        self.entries.append(entry)
        self.cost += entry.cost
        while self.entries.count > policy.historySize || self.entries.count > 1 && self.cost > policy.historyBytes {
            self.removeFirst()
        }
        self.expiry = self.entries.isEmpty ? nil : now + policy.historyTime
    }

    /// Whether no publication is left, although there were some, or their time is over.
    package func hasExpired(_ now: Duration) -> Bool {
        self.position.offset > 0 && self.expiry.map { $0 <= now } ?? true
    }

    /// Removes the entries if their time is over. The position stays.
    package mutating func expire(_ now: Duration) {
        guard let expiry = self.expiry, expiry <= now else { return }
        self.removeAll()
    }

    package mutating func removeAll() {
        self.floor = self.position.offset
        self.entries.removeAll()
        self.cost = 0
        self.expiry = nil
    }

    /// Removes the oldest publications until the others have at most `limit` bytes, or one is left.
    package mutating func shrink(to limit: Int) {
        while self.entries.count > 1, self.cost > limit { self.removeFirst() }
    }

    /// Removes one publication; others keep their offsets, and clients recover them as before.
    /// - Returns: whether it was there.
    package mutating func remove(offset: UInt64) -> Bool {
        guard let index = self.entries.firstIndex(where: { $0.publication.offset == offset }) else { return false }
        self.cost -= self.entries.remove(at: index).cost
        return true
    }

    private mutating func removeFirst() {
        guard let first = self.entries.popFirst() else { return }
        self.cost -= first.cost
        self.floor = max(self.floor, first.publication.offset)
    }

    /// - Parameters:
    ///   - limit: publications returned: 0 for none, below 0 for all.
    ///   - since: publications after this position, or before it if reversed; its own epoch must be the stream's.
    package func read(
        limit: Int, since: StreamPosition?, isReversed: Bool
    ) throws(RequestError) -> [Publication] {
        if let since, since.epoch != self.position.epoch, !(since.epoch.isEmpty && since.offset == 0) {
            throw .unrecoverablePosition
        }
        guard limit != 0 else { return [] }
        let most = limit < 0 ? Int.max : limit
        if isReversed {
            let end = since.map { self.index(after: $0.offset == 0 ? 0 : $0.offset - 1) } ?? self.entries.count
            return self.entries[..<end].suffix(most).reversed().map(\.publication)
        }
        let start = since.map { self.index(after: $0.offset) } ?? 0
        return self.entries[start...].prefix(most).map(\.publication)
    }

    /// Index of the first entry with a higher offset.
    private func index(after offset: UInt64) -> Int {
        var (low, high) = (0, self.entries.count)
        while low < high {
            let middle = (low + high) / 2
            if self.entries[middle].publication.offset <= offset { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Publications that a client at `position` missed.
    /// - Parameter limit: publications above which the client is not recovered.
    /// - Returns: `isComplete` if these are all that it missed. In cache mode, the newest publication alone.
    package func recover(
        from position: StreamPosition, mode: RoomPolicy.Recovery, limit: Int
    ) -> (publications: [Publication], isComplete: Bool) {
        let isFresh = position.epoch.isEmpty && position.offset == 0
        switch mode {
        case .off: return ([], false)
        case .cache:
            // Not recovered for a client at offset 0 of an empty room: its application may then fill the room.
            guard position != self.position || position.offset == 0 else { return ([], true) }
            guard let newest = self.entries.last?.publication else { return ([], false) }
            // An operator removed the newer publications: the client has this one.
            let isKnown = position.epoch == self.position.epoch && newest.offset <= position.offset
            return (isKnown ? [] : [newest], true)
        case .stream:
            guard isFresh || position.epoch == self.position.epoch, position.offset <= self.position.offset else {
                return ([], false)
            }
            let missed = self.entries[self.index(after: position.offset)...]
            guard position.offset >= self.floor, missed.count <= limit else { return ([], false) }
            return (missed.map(\.publication), true)
        }
    }
}
