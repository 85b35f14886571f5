import WireText

/// Kinds of subscriptions: to a channel, to a pattern of channels, to a channel of a cluster's shard.
package enum RedisSubscription: String, CaseIterable, Sendable {
    case channel = ""
    case pattern = "P"
    case shard = "S"

    package var subscribe: String { "\(self.rawValue)SUBSCRIBE" }
    package var unsubscribe: String { "\(self.rawValue)UNSUBSCRIBE" }
}

/// A message that the server sends without a command, or instead of a reply.
package enum RedisPush: Equatable, Sendable {
    /// - Parameter pattern: the one that matched, of a subscription to a pattern.
    case message(RedisSubscription, channel: [UInt8], pattern: [UInt8]?, payload: [UInt8])
    /// A subscription has begun or ended.
    ///
    /// - Parameters:
    ///   - channel: or pattern; `nil` if there was nothing to end.
    ///   - count: subscriptions that the connection has now; shard channels are counted apart from the others.
    case subscriptionChanged(RedisSubscription, isSubscribed: Bool, channel: [UInt8]?, count: Int)
    /// Keys whose cached values are stale; `nil` for all keys.
    case invalidated(keys: [[UInt8]]?)
    case other(kind: String)

    /// - Parameter elements: of a push, or of an array of RESP2.
    /// - Throws: if they do not fit the kind that the first names.
    static func parse(_ elements: [RedisValue]) throws(RedisViolation.Rule) -> RedisPush {
        guard let kind = try? elements.first?.text() else { throw .malformedPush }
        do {
            return try self.parse(kind, elements.dropFirst())
        } catch {
            throw .malformedPush
        }
    }

    private struct Malformed: Error {}

    private enum Kind {
        case message(RedisSubscription)
        case change(RedisSubscription, isSubscribed: Bool)
    }

    /// Kinds of subscriptions. RESP2 sends them as arrays, once a connection has subscriptions.
    private static let kinds: [String: Kind] = {
        var kinds: [String: Kind] = [:]
        for subscription in RedisSubscription.allCases {
            kinds[subscription.rawValue.loweredASCII + "message"] = .message(subscription)
            kinds[subscription.subscribe.loweredASCII] = .change(subscription, isSubscribed: true)
            kinds[subscription.unsubscribe.loweredASCII] = .change(subscription, isSubscribed: false)
        }
        return kinds
    }()

    /// Whether an array of RESP2 is a push.
    static func isPush(_ elements: [RedisValue]) -> Bool {
        guard let kind = try? elements.first?.text() else { return false }
        return self.kinds[kind] != nil
    }

    private static func parse(_ name: String, _ rest: ArraySlice<RedisValue>) throws -> RedisPush {
        let rest = Array(rest)
        func expect(_ count: Int) throws {
            guard rest.count == count else { throw Malformed() }
        }
        switch self.kinds[name] {
        case .message(let subscription):
            let hasPattern = subscription == .pattern
            try expect(hasPattern ? 3 : 2)
            return .message(
                subscription, channel: try rest[rest.count - 2].bytes(),
                pattern: hasPattern ? try rest[0].bytes() : nil, payload: try rest[rest.count - 1].bytes())
        case .change(let subscription, let isSubscribed):
            try expect(2)
            guard let count = Int(exactly: try rest[1].int()), count >= 0 else { throw Malformed() }
            return .subscriptionChanged(
                subscription, isSubscribed: isSubscribed, channel: try rest[0].nonNull?.bytes(), count: count)
        case nil:
            guard name == "invalidate" else { return .other(kind: name) }
            try expect(1)
            return .invalidated(keys: try rest[0].nonNull?.array().map { try $0.bytes() })
        }
    }
}
