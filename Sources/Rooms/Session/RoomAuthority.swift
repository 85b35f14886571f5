/// User and rights of a client, from its token or the gateway's configuration.
package struct ConnectionGrant: Sendable, Equatable {
    /// Empty for an anonymous user.
    package var user = ""
    /// Shown to others in presence, join and leave.
    package var info: Payload?
    /// Seconds since 1970; `nil` does not expire.
    package var expiry: UInt64?
    /// Rooms that the server subscribes the client to.
    package var subscriptions: [SubscriptionGrant] = []
    /// Sent to the client in the reply.
    package var data: Payload?

    package init(user: String = "") {
        self.user = user
    }
}

/// Membership in one room that a token grants.
package struct SubscriptionGrant: Sendable, Equatable {
    package var channel: String
    package var info: Payload?
    /// Sent to the client with the subscription.
    package var data: Payload?
    /// Seconds since 1970; `nil` does not expire.
    package var expiry: UInt64?
    package var mayPublish = true

    package init(channel: String) {
        self.channel = channel
    }
}

/// Why a token was refused.
package enum TokenRefusal: Error, Equatable, Sendable {
    /// It is valid otherwise; the client should get a new one.
    case expired
    case invalid
    /// It is valid otherwise, but for another user, room or client.
    case foreign
    /// The client has none, and needs one.
    case missing
}

/// Decides about clients. Called on the connection's loop; it must not wait.
package protocol RoomAuthority: Sendable {
    /// - Parameter token: empty if the client has none.
    func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant
    /// - Parameters:
    ///   - user: of the connection; the token's own must be the same, else it is `foreign`.
    ///   - channel: that the client asks for; the token's own must be the same, else it is `foreign`.
    func subscription(token: String, user: String, client: String, channel: String, now: UInt64)
        throws(TokenRefusal) -> SubscriptionGrant
    /// `nil` if there are no rooms of this name.
    func policy(of channel: String) -> RoomPolicy?
    /// Whether an operator has forbidden the user to publish in the room.
    func isMuted(user: String, in channel: String) -> Bool
    /// Whether an operator has banned the user from the room.
    func isBanned(user: String, from channel: String) -> Bool
}

/// Limits and intervals of the clients' connections.
package struct RoomClientSettings: Sendable, Equatable {
    /// Time in which a new connection must send `connect`.
    package var connectTimeout: Duration = .seconds(10)
    /// Whether the client gets pings of the protocol. One that gets those of its WebSocket needs none.
    package var sendsPings = true
    package var pingInterval: Duration = .seconds(25)
    /// Time in which a ping must be answered; less than the interval.
    package var pongTimeout: Duration = .seconds(8)
    /// Time after a token's expiry in which the client may still renew it.
    package var refreshDelay: Duration = .seconds(25)
    /// Rooms that one connection may be in.
    package var maximumSubscriptions = 128
    /// Of a room's name, in bytes.
    package var maximumChannelLength = 255
    /// Commands of one connection in a second, on average.
    package var commandRate = 1000
    /// Publications that one recovery returns.
    package var maximumRecovery = 1000
    /// Of the publications that all rooms of one `connect` return together, in bytes. A room beyond it is not recovered.
    package var maximumRecoverySize = 16 << 20
    /// Publications that one `history` command returns.
    package var maximumHistory = 1000
    /// Commands that may fail in an hour, before the connection ends. Temporary errors do not count.
    package var maximumErrors = 1000
    static let errorPeriod: Duration = .seconds(3600)
    /// Shown to clients.
    package var version = ""
    /// For a client whose commands come with requests of their own.
    package var session = ""
    package var node = ""

    package init() {}

    /// Whether a room may have the name: not empty, not too long, no control characters, in Unicode's composed form.
    package func allowsName(_ channel: String) -> Bool {
        !channel.isEmpty && channel.utf8.count <= self.maximumChannelLength
            && channel.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && channel.isComposed
    }

    /// When an expired token can no longer be renewed, in seconds since 1970.
    func end(of expiry: UInt64) -> UInt64 {
        let delay = UInt64(clamping: self.refreshDelay.components.seconds)
        return expiry > .max - delay ? .max : expiry + delay
    }
}
