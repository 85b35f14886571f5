import RedisEngine
import WireText

/// The Redis by which several gateways are one system.
package struct ClusterSettings: Sendable, Equatable {
    /// Policy of rooms while Redis cannot be reached.
    package enum WhenAway: String, Sendable, Hashable, CaseIterable {
        /// Publishing is refused; connections stay, and get what they missed when Redis is back.
        case refuse
        /// Rooms that keep no history serve the members of each node; all others refuse.
        case local
    }

    package var redis: RedisURL
    package var user: String?
    package var password: KeyPassword?
    package var tls = ClientTLSSettings()
    /// Unique in the cluster; `nil` makes one of the host's name.
    package var node: String?
    package var prefix = "sluice"
    package var whenAway = WhenAway.refuse
    package var isDurable = true
    package var presenceTime: Duration = .seconds(60)

    package init(_ redis: RedisURL) {
        self.redis = redis
    }
}

/// A URL of Redis, as it was written. Its description may contain a password.
package struct RedisURL: Sendable, Equatable {
    package let text: String
    package let address: RedisAddress

    package init(_ text: some StringProtocol) throws(ValueSyntaxError) {
        do throws(RedisAddressProblem) {
            self.address = try RedisAddress(String(text))
        } catch {
            throw ValueSyntaxError(expected: "a URL of Redis", remedy: "\(error)")
        }
        self.text = String(text)
    }

    /// Used for a URL that could not be parsed; the configuration is rejected anyway.
    fileprivate static let placeholder = RedisURL(.local)

    private init(_ address: RedisAddress) {
        self.text = address.description
        self.address = address
    }
}

/// Keys of `cluster`.
package typealias ClusterKey = SettingsKeyName<ClusterSettings>

extension ClusterKey {
    package static var redis: Self { "redis" }
    package static var passwordFile: Self { "password-file" }
    package static var tls: Self { "tls" }
    fileprivate static var user: Self { "user" }
    fileprivate static var node: Self { "node" }
    fileprivate static var prefix: Self { "prefix" }
}

extension ClusterSettings: SettingsSection {
    static let sectionName = "Cluster"
    static let initial = ClusterSettings(.placeholder)
    static let keys: [SettingsKey<ClusterSettings>] =
        [
            .required(
                .redis, \.redis, .redisURL,
                """
                Where Redis (7.0 or later), or Valkey, is: `redis://HOST:PORT/DATABASE`, `rediss://` with TLS, \
                `unix:///run/redis.sock`, `redis+sentinel://HOST,HOST/NAME` for the primary of that name, \
                `redis+cluster://HOST,HOST` for a Redis Cluster. `USER:PASSWORD@` may precede the host, and is hidden \
                wherever the configuration is shown.
                """),
            .optional(
                .user, \.user, ValueSyntax<String>.text, default: "the one in the URL, or `default`", example: "sluice",
                "User of Redis; without a password it has no effect."),
        ]
        + KeyPassword.keys("password", file: .passwordFile, \.password, "Password of Redis, instead of one in the URL")
        + [
            .section(
                .tls, \.tls, example: "{ca: /etc/sluice/redis-ca.pem}",
                "TLS for `rediss`, `rediss+sentinel` and `rediss+cluster`."),
            .optional(
                .node, \.node, .name, default: "the host's name and four random digits", example: "gateway-1",
                """
                Name of this node, unique in the cluster: the control plane shows it, and `node=NAME` selects it. A node \
                whose name is taken does not join until the other's lease has ended.
                """),
            .value(
                .prefix, \.prefix, .name,
                "Beginning of all keys and channels in Redis, so that several systems can share one."),
            .value(
                "when-away", \.whenAway, .choice,
                """
                What rooms do while Redis cannot be reached. `refuse`: publishing is refused with 100 (temporary), connections \
                stay, and all recover what they missed when Redis is back. `local`: rooms without history serve the \
                members of each node; those with history refuse.
                """),
            .value(
                "durable", \.isDurable, .boolean,
                """
                Whether a Redis with an append-only file, when it starts again, has all that it acknowledged before. Then clients \
                recover what they missed across the restart. After a crash of the machine that is so only with \
                `appendfsync always`: with `everysec`, the default of Redis, the publications of the last second may be \
                missing without notice. `false` begins another epoch in each room whenever Redis starts again, or the \
                room's slot moves to another server.
                """),
            .value(
                "presence-time", \.presenceTime, .duration(.seconds(3) ... .seconds(3600)),
                """
                Time after which a client is no longer listed in its rooms, nor counted for its user, if its node is gone. \
                Nodes renew their clients in a third of it.
                """),
        ]
}

extension ValueSyntax<RedisURL> {
    package static var redisURL: ValueSyntax {
        ValueSyntax(.text("redis://redis.example:6379", "a URL of Redis")) { text throws(ValueSyntaxError) in
            try RedisURL(text)
        }
    }
}
