import Cluster
import Rooms
import StreamTransport
import Synchronization
import WireText

/// A ban or mute, or its end, as nodes tell each other.
package struct RestrictionChange: Sendable, Equatable {
    /// Longest name of a user and of a room, in bytes.
    private static let nameLimit = 1024

    package var entry: Moderation.Entry
    /// Milliseconds since 1970, by the clock of the node that made the change. Of two changes, the later one holds.
    package var changedAt: Int64
    /// Milliseconds since 1970. The end of a lifted restriction is remembered until then.
    package var endsAt: Int64
    package var isLifted = false

    package init(_ entry: Moderation.Entry, changedAt: Int64, endsAt: Int64, isLifted: Bool = false) {
        self.entry = entry
        self.changedAt = changedAt
        self.endsAt = endsAt
        self.isLifted = isLifted
    }

    /// Whether it replaces `other`, a change of the same restriction. Of changes in the same millisecond, all nodes choose
    /// the same.
    package func replaces(_ other: RestrictionChange) -> Bool {
        if self.changedAt != other.changedAt { return self.changedAt > other.changedAt }
        if self.isLifted != other.isLifted { return self.isLifted }
        return self.endsAt > other.endsAt
    }

    // MARK: Text

    /// Orders the changes of one restriction as `replaces` does, except for their ends.
    fileprivate static func version(of changedAt: Int64, isLifted: Bool) -> Int64 {
        max(0, changedAt) &* 2 &+ (isLifted ? 1 : 0)
    }

    fileprivate var keptValue: KeptValue {
        // Names of rooms and users may have blanks.
        let room = self.entry.room.map { "\($0.utf8.count) \($0)" } ?? "-"
        return KeptValue(
            key: Array("\(self.entry.kind.rawValue) \(room) \(self.entry.user)".utf8),
            version: Self.version(of: self.changedAt, isLifted: self.isLifted),
            endsAt: self.endsAt, bytes: Self.encoded([self]))
    }

    fileprivate var key: String { "\(self.entry.kind.rawValue) \(self.entry.room ?? "") \(self.entry.user)" }

    package static func encoded(_ changes: [RestrictionChange], next: Int? = nil) -> [UInt8] {
        var bytes = Array(#"{"changes":["#.utf8)
        for (index, change) in changes.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            change.write(to: &bytes)
        }
        bytes += Array("]\(next.map { ",\"next\":\($0)" } ?? "")}".utf8)
        return bytes
    }

    private func write(to bytes: inout [UInt8]) {
        bytes += Array(#"{"kind":"\#(self.entry.kind.rawValue)","user":"#.utf8)
        bytes.append(jsonString: self.entry.user)
        if let room = self.entry.room {
            bytes += Array(#","room":"#.utf8)
            bytes.append(jsonString: room)
        }
        bytes += Array(#","changed":\#(self.changedAt),"ends":\#(self.endsAt)"#.utf8)
        bytes += Array(self.isLifted ? #","lifted":true}"#.utf8 : "}".utf8)
    }

    /// - Returns: `nil` for bytes that are not changes; changes that no node makes are left out.
    package static func decoded(_ bytes: [UInt8]) -> (changes: [RestrictionChange], next: Int?)? {
        var changes: [RestrictionChange] = []
        var next: Int?
        let isDocument = JSONReader.readDocument(bytes) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "changes":
                try value.readArray { (element) throws(JSONSyntaxError) in
                    if let change = try Self.read(&element) { changes.append(change) }
                }
            case "next": next = try value.readInt()
            default: try value.skipValue()
            }
        }
        return isDocument ? (changes, next) : nil
    }

    private static func read(_ reader: inout JSONReader) throws(JSONSyntaxError) -> RestrictionChange? {
        var (kind, user, room) = ("", "", String?.none)
        var (changedAt, endsAt, isLifted) = (0, 0, false)
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "kind": kind = try value.readString()
            case "user": user = try value.readString()
            case "room": room = try value.readString()
            case "changed": changedAt = try value.readInt()
            case "ends": endsAt = try value.readInt()
            case "lifted": isLifted = try value.readBool()
            default: try value.skipValue()
            }
        }
        guard let kind = Moderation.Kind(rawValue: kind), !user.isEmpty, user.utf8.count <= Self.nameLimit,
            (room ?? "").utf8.count <= Self.nameLimit
        else { return nil }
        return RestrictionChange(
            Moderation.Entry(kind: kind, user: user, room: room), changedAt: Int64(changedAt), endsAt: Int64(endsAt),
            isLifted: isLifted)
    }
}

/// One node's copy of the bans and mutes of its cluster, lifted ones included until they would have ended.
/// Bounded by `Moderation.limit`.
package struct RestrictionReplica: Sendable {
    /// Changes made this long after the present, by the clock of another node, are refused: a clock that is far ahead would
    /// otherwise decide for good.
    package static let clockTolerance: Int64 = 3_600_000

    private var changes: [Moderation.Entry: RestrictionChange] = [:]

    package init() {}

    package subscript(_ entry: Moderation.Entry) -> RestrictionChange? { self.changes[entry] }

    /// Time of a change that is made now: later than the one that is known, unless that is so far ahead that all nodes
    /// refuse it.
    package func timeOfChange(of entry: Moderation.Entry, now: Int64) -> Int64 {
        guard let known = self.changes[entry], !Self.isAhead(known, now: now) else { return now }
        return max(now, known.changedAt + 1)
    }

    /// Whether no later change that nodes accept could replace it: a clock was ahead when it was made.
    private static func isAhead(_ change: RestrictionChange, now: Int64) -> Bool {
        change.changedAt >= now + Self.clockTolerance
    }

    /// - Parameter now: milliseconds since 1970.
    /// - Returns: whether the change is new, and holds.
    package mutating func apply(_ change: RestrictionChange, now: Int64) -> Bool {
        guard change.endsAt > now, change.changedAt <= now + Self.clockTolerance else { return false }
        if let known = self.changes[change.entry] {
            guard change.replaces(known) || Self.isAhead(known, now: now) else { return false }
        } else if self.changes.count >= Moderation.limit {
            self.removeEnded(now: now)
            guard self.changes.count < Moderation.limit else { return false }
        }
        self.changes[change.entry] = change
        return true
    }

    private mutating func removeEnded(now: Int64) {
        self.changes = self.changes.filter { $0.value.endsAt > now }
    }

    /// A number that is the same on nodes that know the same restrictions.
    package mutating func digest(now: Int64) -> UInt64 {
        self.removeEnded(now: now)
        return self.changes.values.reduce(0) { sum, change in
            sum
                &+ "\(change.key) \(change.changedAt) \(change.isLifted)".utf8.reduce(0xCBF2_9CE4_8422_2325) {
                    ($0 ^ UInt64($1)) &* 0x100_0000_01B3
                }
        }
    }

    /// All changes, in an order that later changes do not alter.
    package var all: [RestrictionChange] { self.unordered.sorted { $0.key < $1.key } }

    fileprivate var unordered: [RestrictionChange] { Array(self.changes.values) }
}

/// The bans and mutes of the cluster on this node: the replica, and the rooms that obey it.
final class SharedRestrictions: Sendable {
    /// Bytes of one answer, from which on no further change is added.
    private static let answerBytes = 256 << 10
    /// Changes that Redis is asked to keep in one step.
    private static let keptTogether = 100

    private let rooms: RoomOperations
    private let replica = Mutex(RestrictionReplica())

    init(_ rooms: RoomOperations) {
        self.rooms = rooms
    }

    private static var now: Int64 { Machine.wallClockMilliseconds() }

    // MARK: Changes of this node

    /// - Returns: the change to announce; `nil` if there are too many restrictions.
    func restrict(_ entry: Moderation.Entry, for duration: Duration) -> RestrictionChange? {
        let now = Self.now
        let (seconds, attoseconds) = duration.components
        let milliseconds = max(1, seconds * 1000 + attoseconds / 1_000_000_000_000_000)
        return self.replica.withLock { replica in
            let changedAt = replica.timeOfChange(of: entry, now: now)
            let change = RestrictionChange(entry, changedAt: changedAt, endsAt: now + milliseconds)
            guard replica.apply(change, now: now) else { return nil }
            return self.obey(change, now: now) ? change : nil
        }
    }

    /// - Returns: the change to announce; `nil` if there is no such restriction.
    func lift(_ entry: Moderation.Entry) -> RestrictionChange? {
        let now = Self.now
        return self.replica.withLock { replica in
            guard let known = replica[entry], !known.isLifted, known.endsAt > now else { return nil }
            var change = known
            change.changedAt = replica.timeOfChange(of: entry, now: now)
            change.isLifted = true
            _ = replica.apply(change, now: now)
            _ = self.obey(change, now: now)
            return change
        }
    }

    /// - Returns: `false` if there are too many restrictions.
    private func obey(_ change: RestrictionChange, now: Int64) -> Bool {
        let entry = change.entry
        if change.isLifted { return self.rooms.lift(entry.kind, user: entry.user, in: entry.room) }
        return self.rooms.restrict(
            entry.kind, user: entry.user, in: entry.room, for: .milliseconds(change.endsAt - now))
    }

    // MARK: Changes of other nodes

    func apply(_ content: [UInt8]) async {
        guard let decoded = RestrictionChange.decoded(content) else { return }
        await self.apply(decoded.changes)
    }

    private func apply(_ changes: [RestrictionChange]) async {
        let now = Self.now
        for change in changes {
            let isNew = self.replica.withLock { replica in
                replica.apply(change, now: now) && self.obey(change, now: now)
            }
            guard isNew, !change.isLifted, change.entry.kind == .ban else { continue }
            let selection = RoomOperations.ClientSelection(user: change.entry.user)
            if let room = change.entry.room {
                _ = await self.rooms.kick(selection, from: room)
            } else {
                _ = await self.rooms.unsubscribeFromAll(selection)
            }
        }
    }

    // MARK: What Redis keeps

    /// - Returns: `false` if Redis did not answer each step.
    func keep(_ changes: [RestrictionChange], on bus: any ClusterBus) async -> Bool {
        let now = Self.now
        let latest = now + RestrictionReplica.clockTolerance
        var rest = changes[...]
        while !rest.isEmpty {
            let values = rest.prefix(Self.keptTogether).map(\.keptValue)
            rest = rest.dropFirst(Self.keptTogether)
            do {
                try await bus.keep(
                    values, now: now, latest: RestrictionChange.version(of: latest, isLifted: true),
                    limit: Moderation.limit)
            } catch {
                return false
            }
        }
        return true
    }

    /// Obeys what Redis keeps, and keeps there what it lacks, because it was away, or was started again without it.
    /// - Returns: `false` if Redis did not answer.
    func synchronize(with bus: any ClusterBus) async -> Bool {
        guard let kept = try? await bus.kept(limit: Moderation.limit) else { return false }
        let changes = kept.flatMap { RestrictionChange.decoded($0)?.changes ?? [] }
        await self.apply(changes)
        let stored = Dictionary(changes.map { ($0.entry, $0) }) { $1 }
        let now = Self.now
        // Where both have a change, and they differ, the one in Redis was not accepted.
        let missing = self.replica.withLock { $0.unordered }.filter { $0.endsAt > now && stored[$0.entry] != $0 }
        return await self.keep(missing, on: bus)
    }

    // MARK: Comparing

    /// Asks for all changes from a position on, unless the other node knows the same.
    func request(from position: Int) -> [UInt8] {
        let digest = self.replica.withLock { $0.digest(now: Self.now) }
        return Array(#"{"digest":\#(digest),"from":\#(position)}"#.utf8)
    }

    func answer(_ content: [UInt8]) -> [UInt8] {
        var (digest, position) = (UInt64(0), 0)
        var reader = JSONReader(content)
        try? reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "digest": digest = try value.readUInt64()
            case "from": position = try value.readInt()
            default: try value.skipValue()
            }
        }
        let changes = self.replica.withLock { replica in
            replica.digest(now: Self.now) == digest ? [] : replica.all
        }
        var bytes = 0
        let page = changes.dropFirst(max(0, position)).prefix { change in
            defer { bytes += change.entry.user.utf8.count + (change.entry.room ?? "").utf8.count + 96 }
            return bytes < Self.answerBytes
        }
        let end = max(0, position) + page.count
        return RestrictionChange.encoded(Array(page), next: end < changes.count ? end : nil)
    }

    /// - Returns: the next position, `.some(nil)` after the last page; `nil` for an answer that is none.
    func read(_ answer: [UInt8]) async -> Int?? {
        guard let decoded = RestrictionChange.decoded(answer) else { return nil }
        await self.apply(decoded.changes)
        return .some(decoded.next)
    }
}
