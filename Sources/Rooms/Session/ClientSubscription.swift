/// A client's membership in one room, and how its `subscribe` is answered.
struct ClientSubscription: Sendable {
    var isComplete = false
    /// Of the command that asked for it.
    var number: UInt32
    var join: RoomClient.Join
    var grant: SubscriptionGrant?
    /// Until when its token must be renewed, with the delay; in seconds since 1970.
    var expiry: UInt64?
    let isServerSide: Bool
    /// The client asked for what it missed.
    var recovers = false
    /// Why the server ends it as soon as the join is complete; `nil` if it does not.
    var endWhenComplete: UnsubscribeCode?

    func reply(_ result: RoomClient.JoinResult, _ now: RoomClient.Instant) -> Reply.SubscribeResult {
        var reply = Reply.SubscribeResult()
        reply.expiry = Reply.Expiry(until: self.expiry, now)
        reply.data = self.grant?.data
        reply.isRecoverable = self.join.isRecoverable
        reply.isPositioned = self.join.isPositioned
        if self.join.isPositioned { reply.position = result.position }
        reply.publications = result.publications
        if let filter = self.join.filter { reply.publications.removeAll { !filter.matches($0.tags) } }
        reply.wasRecovering = self.recovers
        reply.usesDeltas = self.join.usesDeltas
        guard result.isRecovered, let start = self.join.recovery else { return reply }
        reply.isRecovered = true
        // The client counts on from its own position, and can be cut off between two of the publications. Where none is left
        // that it wants, it continues after them.
        if !reply.publications.isEmpty { reply.position.offset = start.offset }
        return reply
    }
}

extension [String: ClientSubscription] {
    /// Whether a renewed token names a room that the former one did not, and the client is not in, or no longer names one
    /// that the former one brought it into.
    func differ(_ former: ConnectionGrant, renewed: ConnectionGrant) -> Bool {
        let old = Set(former.subscriptions.map(\.channel))
        let new = Set(renewed.subscriptions.map(\.channel))
        return new.subtracting(old).contains { self[$0] == nil }
            || old.subtracting(new).contains { self[$0]?.isServerSide == true }
    }
}

extension Command.Request {
    /// The room of a command that begins or ends a membership; `nil` for others.
    var membershipChannel: String? {
        switch self {
        case .subscribe(let request): request.channel
        case .unsubscribe(let channel): channel
        default: nil
        }
    }

    /// The room of a command in which membership matters, but does not change; `nil` for others.
    var usedChannel: String? {
        switch self {
        case .publish(let channel, _), .presence(let channel), .presenceStats(let channel),
            .subscriptionRefresh(let channel, _):
            channel
        case .history(let request): request.channel
        case .subscribe, .unsubscribe, .connect, .refresh, .ping, .pong, .send, .rpc, .unsupported: nil
        }
    }
}

extension Reply.Expiry {
    /// - Parameter expiry: in seconds since 1970; `nil` does not expire.
    init(until expiry: UInt64?, _ now: RoomClient.Instant) {
        self.init(expiry.map { UInt32(clamping: max(1, $0 > now.unix ? $0 - now.unix : 1)) })
    }
}

extension Reply.SubscribeResult {
    /// The same for a subscription that the server makes: a push of it has no place for publications, which follow it.
    var pushes: [Reply.Push] { [.subscribe(self)] + self.publications.map { .publication($0) } }
}
