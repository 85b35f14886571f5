import Rooms
import Testing

/// A client's machine with a scripted authority and a clock of its own.
struct ClientScene {
    struct Authority: RoomAuthority {
        var policies: [String: RoomPolicy] = [:]
        var grants: [String: ConnectionGrant] = [:]
        var subscriptions: [String: SubscriptionGrant] = [:]
        var acceptsAnonymous = true
        var banned: Set<String> = []
        var muted: Set<String> = []

        func connection(token: String, now: UInt64) throws(TokenRefusal) -> ConnectionGrant {
            if token.isEmpty, self.acceptsAnonymous { return ConnectionGrant() }
            if token == "expired" { throw .expired }
            guard let grant = self.grants[token] else { throw .invalid }
            return grant
        }

        func subscription(
            token: String, user: String, client: String, channel: String, now: UInt64
        ) throws(TokenRefusal) -> SubscriptionGrant {
            if token == "expired" { throw .expired }
            guard let grant = self.subscriptions[token] else { throw .invalid }
            guard grant.channel == channel else { throw .foreign }
            return grant
        }

        func policy(of channel: String) -> RoomPolicy? { self.policies[channel] }
        func isMuted(user: String, in channel: String) -> Bool { self.muted.contains(user) }
        func isBanned(user: String, from channel: String) -> Bool { self.banned.contains(user) }
    }

    var client: RoomClient
    var now = RoomClient.Instant(elapsed: .zero, unix: 1000)
    /// The answer to a registration; `nil` leaves it open.
    var allowsRegistration: Bool? = true

    init(
        _ authority: Authority = ClientScene.authority(), onlyReceives: Bool = false,
        _ change: (inout RoomClientSettings) -> Void = { _ in }
    ) {
        var settings = RoomClientSettings()
        change(&settings)
        self.client = RoomClient(
            identifier: "me", settings: settings, authority: authority, onlyReceives: onlyReceives, now: .zero)
    }

    static func policy(_ change: (inout RoomPolicy) -> Void = { _ in }) -> RoomPolicy {
        var policy = RoomPolicy(name: "p", pattern: RoomPattern("*"))
        policy.hasPresence = true
        policy.historySize = 10
        policy.recovery = .stream
        change(&policy)
        return policy
    }

    static func authority(_ change: (inout RoomPolicy) -> Void = { _ in }) -> Authority {
        Authority(policies: ["a": Self.policy(change), "b": Self.policy(change)])
    }

    mutating func advance(_ seconds: Int) {
        self.now.elapsed += .seconds(seconds)
        self.now.unix += UInt64(seconds)
    }

    mutating func send(_ request: Command.Request, number: UInt32 = 7) -> [RoomClient.Action] {
        self.client.received(Command(number: number, request), at: self.now)
        return self.actions()
    }

    mutating func actions() -> [RoomClient.Action] {
        var actions: [RoomClient.Action] = []
        while let action = self.client.nextAction() {
            actions.append(action)
            guard case .register = action, let isAllowed = self.allowsRegistration else { continue }
            self.client.registered(isAllowed, at: self.now)
        }
        return actions
    }

    mutating func connect(token: String = "") -> [RoomClient.Action] {
        var request = Command.ConnectRequest()
        request.token = token
        return self.send(.connect(request), number: 1)
    }

    mutating func join(_ channel: String, token: String = "") -> [RoomClient.Action] {
        var request = Command.SubscribeRequest(channel: channel)
        request.token = token
        let actions = self.send(.subscribe(request))
        guard case .join? = actions.last else { return actions }
        self.client.joined(
            channel, .success(RoomClient.JoinResult(position: StreamPosition(offset: 3, epoch: "e"))), at: self.now)
        return self.actions()
    }

    static func error(_ error: CommandError, number: UInt32 = 7) -> [RoomClient.Action] {
        [.send(.error(number: number, error))]
    }
}
