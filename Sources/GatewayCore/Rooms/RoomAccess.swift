import Rooms
import Synchronization

/// Decides about the clients of the rooms' protocol by the configuration, and by what operators have forbidden.
struct RoomAccess: RoomAuthority {
    let hub: RoomHub
    /// From a field that a trusted proxy sets; `nil` without one.
    var trustedUser: String?

    func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
        guard token.isEmpty else { throw .invalid }
        return ConnectionGrant(user: self.trustedUser ?? "")
    }

    func subscription(
        token: String, user: String, client: String, channel: String, now: UInt64
    ) throws(TokenRefusal) -> SubscriptionGrant {
        throw .invalid
    }

    func policy(of channel: String) -> RoomPolicy? { self.hub.policy(of: channel) }

    func isMuted(user: String, in channel: String) -> Bool {
        self.hub.moderation.contains(.mute, user: user, room: channel, now: self.hub.now)
    }

    func isBanned(user: String, from channel: String) -> Bool {
        self.hub.moderation.contains(.ban, user: user, room: channel, now: self.hub.now)
    }
}

/// Users that operators have banned from rooms, or muted in them, each for a time.
package final class Moderation: Sendable {
    package enum Kind: String, Sendable, Hashable {
        /// May not enter.
        case ban
        /// May not publish.
        case mute
    }

    package struct Entry: Sendable, Hashable {
        package let kind: Kind
        package let user: String
        /// `nil` is every room.
        package let room: String?
    }

    /// Entries above which the one that ends first is replaced.
    package static let limit = 100_000

    /// When each entry ends.
    private let entries = Mutex<[Entry: Duration]>([:])

    package init() {}

    /// - Parameter expiry: on the clock of `now`.
    /// - Returns: whether there was space for it.
    package func add(_ entry: Entry, until expiry: Duration, now: Duration) -> Bool {
        self.entries.withLock { entries in
            if entries[entry] == nil, entries.count >= Self.limit {
                entries = entries.filter { $0.value > now }
                if entries.count >= Self.limit { return false }
            }
            entries[entry] = expiry
            return true
        }
    }

    /// - Returns: whether it was there.
    package func remove(_ entry: Entry) -> Bool { self.entries.withLock { $0.removeValue(forKey: entry) != nil } }

    /// Anonymous users cannot be named.
    package func contains(_ kind: Kind, user: String, room: String, now: Duration) -> Bool {
        guard !user.isEmpty else { return false }
        return self.entries.withLock { entries in
            guard !entries.isEmpty else { return false }
            return [room, nil].contains { name in
                entries[Entry(kind: kind, user: user, room: name)].map { $0 > now } ?? false
            }
        }
    }

    package func all(now: Duration) -> [(entry: Entry, remaining: Duration)] {
        self.entries.withLock { entries in entries.filter { $0.value > now } }
            .map { ($0.key, $0.value - now) }
            .sorted {
                ($0.0.user, $0.0.room ?? "", $0.0.kind.rawValue) < ($1.0.user, $1.0.room ?? "", $1.0.kind.rawValue)
            }
    }
}
