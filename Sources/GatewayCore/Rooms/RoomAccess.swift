import GatewayConfiguration
import Rooms
import StreamTransport
import Synchronization
import WebTokens
import WireText

/// Decides about the clients of the rooms' protocol by the configuration, and by what operators have forbidden.
struct RoomAccess: RoomAuthority {
    let hub: RoomHub
    /// Known before the client connects to the rooms.
    var trustedUser: TrustedUser
    /// Whether a client is in the rooms of its token and in its personal room.
    var entersRooms = true

    func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
        var grant = try self.identity(token: token, now: now)
        if let end = self.trustedUser.expiry { grant.expiry = min(grant.expiry ?? .max, end) }
        if self.entersRooms, !grant.user.isEmpty, let room = self.hub.currentSettings.personalRoom {
            grant.subscriptions.append(SubscriptionGrant(channel: room.name(of: grant.user)))
        }
        return grant
    }

    private func identity(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
        guard !token.isEmpty else {
            return self.trustedUser.name.isEmpty
                ? try self.anonymous() : ConnectionGrant(user: self.trustedUser.name)
        }
        let token = try self.verified(token, now)
        do throws(TokenError) {
            // A token for a room says nothing about the connection.
            guard try (token.channel() ?? "").isEmpty else { throw .malformed("it is for a channel") }
            guard token.subject?.isComposed != false else { throw .malformed("sub is not in the form NFC") }
            var grant = ConnectionGrant(user: token.subject ?? "")
            grant.info = try token.shownInfo
            grant.expiry = try token.connectionExpiry
            if self.entersRooms { grant.subscriptions = try token.roomGrants() }
            return grant
        } catch {
            throw .invalid
        }
    }

    private func anonymous() throws(TokenRefusal) -> ConnectionGrant {
        guard self.hub.currentSettings.admitsAnonymous else { throw .missing }
        return ConnectionGrant()
    }

    private func verified(_ token: String, _ now: UInt64) throws(TokenRefusal) -> Token {
        guard let verifier = self.hub.tokenVerifier else { throw .invalid }
        do throws(TokenError) {
            return try verifier.verify(token, now: Int64(clamping: now))
        } catch {
            if case .expired = error { throw .expired }
            throw .invalid
        }
    }

    func subscription(
        token: String, user: String, client: String, channel: String, now: UInt64
    ) throws(TokenRefusal) -> SubscriptionGrant {
        let token = try self.verified(token, now)
        var grant = SubscriptionGrant(channel: channel)
        let isOwn: Bool
        do throws(TokenError) {
            guard let room = try token.channel(), !room.isEmpty else { throw .malformed("it is for no channel") }
            let holder = try token.client() ?? ""
            isOwn =
                room.utf8.elementsEqual(channel.utf8) && (token.subject ?? "").utf8.elementsEqual(user.utf8)
                && ["", client].contains(holder)
            grant.info = try token.shownInfo
            grant.data = try token.subscriptionData
            grant.expiry = try token.connectionExpiry
        } catch {
            throw .invalid
        }
        guard isOwn else { throw .foreign }
        return grant
    }

    func policy(of channel: String) -> RoomPolicy? {
        var policy = self.hub.policy(of: channel)
        // A client that never enters rooms may publish where it may enter.
        if !self.entersRooms, let found = policy, found.publish == .members { policy?.publish = found.subscribe }
        return policy
    }

    func isMuted(user: String, in channel: String) -> Bool {
        self.hub.moderation.contains(.mute, user: user, room: channel, now: self.hub.now)
    }

    func isBanned(user: String, from channel: String) -> Bool {
        self.hub.moderation.contains(.ban, user: user, room: channel, now: self.hub.now)
    }
}

/// Claims of Centrifugo's tokens.
extension Token {
    /// `info`, or the bytes of `b64info`.
    fileprivate var shownInfo: Payload? {
        get throws(TokenError) {
            if let bytes = try self.binaryInfo() { return Payload(detecting: bytes) }
            return self.info.flatMap { Payload.json(text: $0) }
        }
    }

    /// `data`, or the bytes of `b64data`.
    fileprivate var subscriptionData: Payload? {
        get throws(TokenError) {
            if let bytes = try self.binaryData() { return Payload(detecting: bytes) }
            return self.data.flatMap { Payload.json(text: $0) }
        }
    }

    /// `expire_at` where the token has it, 0 for never; else `exp`.
    fileprivate var connectionExpiry: UInt64? {
        get throws(TokenError) {
            let time = try self.expireAt() ?? self.expiry ?? 0
            return time > 0 ? UInt64(time) : nil
        }
    }

    /// Rooms of `subs` and `channels`.
    fileprivate func roomGrants() throws(TokenError) -> [SubscriptionGrant] {
        var grants: [SubscriptionGrant] = []
        for (channel, options) in try self.subscriptions() ?? [] {
            var grant = SubscriptionGrant(channel: channel)
            grant.info = Self.payload("info", in: options)
            grant.data = Self.payload("data", in: options)
            grants.append(grant)
        }
        let named = Set(grants.map(\.channel))
        for channel in try self.channels() ?? [] where !named.contains(channel) {
            grants.append(SubscriptionGrant(channel: channel))
        }
        return grants
    }

    /// Member `name` of a subscription's options, or the bytes of the one with `b64` before it.
    private static func payload(_ name: String, in options: [UInt8]) -> Payload? {
        var reader = JSONReader(options)
        var payload: Payload?
        try? reader.readObject { (member, value) throws(JSONSyntaxError) in
            switch member.text {
            case name: payload = .json(try value.readRaw())
            case "b64" + name: payload = Base64.decoded(try value.readString().utf8).map { Payload(detecting: $0) }
            default: try value.skipValue()
            }
        }
        return payload
    }
}

/// A user that the request itself names: by the token of a route with `auth`, or by a field that a proxy sets.
struct TrustedUser: Sendable, Equatable {
    /// Empty where neither token nor field names a user in Unicode's composed form. A repeated field is one of the client and
    /// one that a proxy added: none counts.
    let name: String
    /// When the token expires, in seconds since 1970, whomever it names; `nil` if it does not, or its end does not matter.
    var expiry: UInt64?

    /// - Parameters:
    ///   - header: name of the field with the user's name, which a proxy sets; `nil` if the request is not a proxy's.
    ///   - expires: whether the rooms end the connection when the token expires. Those of WebSockets are ended by their route.
    init(_ grant: AccessGrant?, _ head: RequestHead, header: String?, expires: Bool) {
        let field = header.map { head.fields.single($0) }
        let named = field.flatMap { $0.isRepeated ? nil : $0.first }
        let name = grant?.subject ?? named ?? ""
        self.name = name.isComposed ? name : ""
        if expires { self.expiry = grant?.expiry.map { UInt64(clamping: $0 / 1000) } }
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

        package init(kind: Kind, user: String, room: String?) {
            self.kind = kind
            self.user = user
            self.room = room
        }
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
