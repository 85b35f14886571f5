import Rooms

/// Settings of the rooms: policies by name, and limits of the clients' connections.
package struct RoomSettings: Sendable, Equatable {
    package var policies: [RoomPolicy] = []
    package var client = RoomClientSettings()
    /// Connections that one user may have; `nil` is unlimited.
    package var maximumConnectionsPerUser: Int?
    /// Rooms in this gateway, those without members included.
    package var maximumRooms = 100_000
    /// Rooms without members that one client has made.
    package var maximumRoomsPerClient = 10_000
    /// Of the histories of all rooms in this gateway, in bytes.
    package var maximumHistoryTotal = 256 << 20
    /// Field of the opening request that names the user; `nil` trusts none.
    package var userHeader: String?
    /// The entry of `tokens` that verifies the tokens of clients; `nil` refuses tokens.
    package var tokens: String?
    /// Whether clients without a token, and without a trusted field, may connect.
    package var admitsAnonymous = true
    /// The room that each user's clients are in from the beginning; `nil` for none.
    package var personalRoom: PersonalRoom?
    /// Programs that may call the server API on the control plane; without any, there is no such API.
    package var apiKeys: [RoomAPIKey] = []

    package init() {}

    /// The first policy whose pattern matches. Without any policy, rooms of all names are open; with some, a name that
    /// none matches has `nil`.
    package func policy(of room: String) -> RoomPolicy? {
        guard !self.policies.isEmpty else { return .open }
        return self.policies.first { $0.pattern.matches(room) }
    }
}

/// Names the personal room of a user.
package struct PersonalRoom: Sendable, Hashable, CustomStringConvertible {
    fileprivate static let placeholder = "{user}"
    package let description: String

    package func name(of user: String) -> String { self.description.replacing(Self.placeholder, with: user) }
}

/// A program that calls the server API on the control plane; only the hash of its key is stored.
package struct RoomAPIKey: Sendable, Equatable {
    /// Name of the caller in the audit log.
    package var name: String
    package var hash: TokenHash

    package init(name: String, hash: TokenHash) {
        self.name = name
        self.hash = hash
    }
}

/// Keys of `rooms`.
package typealias RoomKey = SettingsKeyName<RoomSettings>

extension RoomKey {
    package static var policies: Self { "policies" }
    package static var tokens: Self { "tokens" }
    fileprivate static var apiKeys: Self { "api-keys" }
    fileprivate static var pingInterval: Self { "ping-interval" }
    fileprivate static var pongTimeout: Self { "pong-timeout" }
}

extension RoomSettings: SettingsSection {
    static let sectionName = "Rooms"
    static let initial = RoomSettings()
    static let keys: [SettingsKey<RoomSettings>] = [
        .sections(
            .policies, \.policies, example: #"[{name: news, pattern: "news:*", publish: nobody, history-size: 100}]"#,
            """
            What rooms keep and permit, by patterns of their names; the first that matches counts. Without policies all \
            rooms are open and keep nothing. With some, a room that none matches does not exist for clients of the \
            protocol (error 102).
            """),
        .value(
            .pingInterval, \.client.pingInterval, .duration(.milliseconds(100) ... .seconds(86_400)),
            "Interval of the pings that clients of the protocol get."),
        .value(
            .pongTimeout, \.client.pongTimeout, .duration(.milliseconds(50) ... .seconds(86_400)),
            "Time in which a client must answer a ping; after it the connection ends with 3012."),
        .value(
            "connect-timeout", \.client.connectTimeout, .duration(.seconds(1) ... .seconds(86_400)),
            "Time in which a client must send `connect`; after it the connection ends with 3502."),
        .value(
            "refresh-delay", \.client.refreshDelay, .duration(.seconds(1) ... .seconds(86_400)),
            """
            Time after the expiry of a token in which the client may still renew it; after it the connection ends with \
            3005, or the subscription with 2501.
            """),
        .value(
            "max-rooms", \.client.maximumSubscriptions, .integer(1...100_000),
            "Rooms that one connection may be in. Above it a subscription is refused with 106."),
        .value(
            "max-total", \.maximumRooms, .integer(1...10_000_000),
            """
            Rooms in this gateway: those with members, and those that keep publications. Above it, entering a further \
            room or publishing in it is refused with 106; a client without a protocol is closed with 1013. From half \
            of it on, rooms in which nothing was published end 2 seconds after their last member left, else 60. In a \
            cluster, rooms without members are in Redis alone and not counted.
            """),
        .value(
            "max-total-per-client", \.maximumRoomsPerClient, .integer(1...10_000_000),
            """
            Rooms without members in this gateway that one client has made, by publishing in them or entering them, and \
            never more than half of `max-total`: so one client cannot use up all rooms with made-up names. Above it, a \
            further room is refused to this client with 106 until one of its rooms ends or has members again. A client is \
            a user; without a name it is an address, of IPv6 its /64. Rooms that the control plane makes are not counted. In a cluster it bounds nothing: \
            rooms without members are in Redis alone, until `history-time` is over.
            """),
        .value(
            "max-history-total", \.maximumHistoryTotal, .size((64 << 10)...(1 << 40)),
            """
            Memory of all histories in this gateway; in a cluster, of its copies for rooms with members. Above it, the histories of the rooms that were not used for longest \
            are removed, those without members first, until an eighth of it is free. Clients that come back to such a \
            room get `recovered: false`.
            """),
        .value(
            "max-name-length", \.client.maximumChannelLength, .integer(1...4096),
            "Length of a room's name in bytes. A longer one is refused with 107."),
        .value(
            "command-rate", \.client.commandRate, .integer(1...1_000_000),
            """
            Commands of one connection in a second, on average. Above it the connection ends with 3013. Of the requests \
            that publish by `POST`, those of one user, or of one address without a name, count together; above it they \
            get status 429.
            """),
        .value(
            "max-recovery", \.client.maximumRecovery, .integer(1...100_000),
            """
            Most publications that a reconnecting client gets. A client that missed more gets `recovered: \
            false`.
            """),
        .value(
            "max-history", \.client.maximumHistory, .integer(1...100_000),
            "Publications that one request for the history returns."),
        .orNone(
            "max-connections-per-user", \.maximumConnectionsPerUser, .integer(1...1_000_000), example: "16",
            "Connections that one user may have. A further one ends with 3504. Users without a name are not counted."),
        .optional(
            .tokens, \.tokens, .name, example: "main",
            """
            Name of the entry of `tokens` that verifies connection and subscription tokens; without one, tokens are \
            refused. On a route with `auth`, the token of the request names the user of a client that sends none.
            """),
        .value(
            "anonymous", \.admitsAnonymous, .boolean,
            """
            Whether clients may connect without a token. With `false` such a connection ends with 3501, unless \
            `user-header` or the route's `auth` names its user, and a client without a protocol, which has no other user, \
            with 1008.
            """),
        .optional(
            "personal-room", \.personalRoom, .personalRoom, example: "\"#{user}\"",
            """
            Name of a room that each client with a user name is in from the beginning; `{user}` is the name. \
            Give these rooms a policy with `subscribe: nobody`, so that no other user enters them.
            """),
        .optional(
            "user-header", \.userHeader, .headerName, example: "X-User",
            """
            Field of the opening request whose value is the user's name. It counts only in requests of the peers that \
            `forwarding-trusted` of the listener names, by default those of the same machine: proxies that remove the \
            field from their clients' requests. A request with the field empty, or more than once, has no user.
            """),
        .sections(
            .apiKeys, \.apiKeys,
            example: """
                [{name: backend, hash: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}]
                """,
            """
            Keys for Centrifugo's server API, below `/api/` on the control plane. A request sends its key as \
            `X-API-Key`. A key permits everything in all rooms; the control plane's own scopes do not matter. Without \
            this list, `/api/` does not exist.
            """),
    ]

    mutating func check(_ section: SectionReader<RoomSettings>) {
        self.checkKeys(section)
        for (index, policy) in self.policies.enumerated() where !policy.name.isEmpty {
            guard self.policies.prefix(index).contains(where: { $0.name == policy.name }) else { continue }
            section.problems.add(
                at: section.path(.policies).index(index).key("name"),
                expected: "a name that no other policy has", remedy: "choose another")
        }
        if section.isSet(.pongTimeout) || section.isSet(.pingInterval),
            self.client.pongTimeout >= self.client.pingInterval
        {
            section.add(
                section.isSet(.pongTimeout) ? .pongTimeout : .pingInterval,
                expected: "a pong timeout shorter than the ping interval",
                remedy: "a client that has not answered a ping gets no further one")
        }
    }
}

extension RoomSettings {
    fileprivate func checkKeys(_ section: SectionReader<RoomSettings>) {
        section.rejectEmptyList(
            .apiKeys, expected: "at least one key", remedy: "leave it out for a control plane without /api/")
        var names: Set<String> = []
        for (index, key) in self.apiKeys.enumerated() where !names.insert(key.name).inserted && !key.name.isEmpty {
            section.problems.add(
                at: section.path(.apiKeys).index(index).key("name"),
                expected: "a name that no other key has", remedy: "choose another")
        }
    }
}

extension RoomAPIKey: SettingsSection {
    static let sectionName = "RoomAPIKey"
    static let initial = RoomAPIKey(name: "", hash: .placeholder)
    static let keys: [SettingsKey<RoomAPIKey>] = [
        .required("name", \.name, .name, "Name of the caller in the audit log, unique among keys."),
        .required(
            "hash", \.hash, .tokenHash,
            """
            SHA-256 of the key; the key itself is not stored. Take a key of 256 random bits, as `sluice token` makes: \
            a short one could be found from its hash.
            """),
    ]
}

/// Keys of an entry of `rooms.policies`.
package typealias RoomPolicyKey = SettingsKeyName<RoomPolicy>

extension RoomPolicyKey {
    fileprivate static var historySize: Self { "history-size" }
    fileprivate static var recovery: Self { "recovery" }
}

extension RoomPolicy: SettingsSection {
    static let sectionName = "RoomPolicy"
    static let initial = RoomPolicy(name: "", pattern: RoomPattern("*"))
    static let keys: [SettingsKey<RoomPolicy>] = Self.permissionKeys + Self.historyKeys + Self.limitKeys

    private static let permissionKeys: [SettingsKey<RoomPolicy>] = [
        .required("name", \.name, .name, "Name for metrics, unique among policies."),
        .required(
            "pattern", \.pattern, .roomPattern,
            "Names of the rooms: `*` matches any text, also none; other characters match themselves."),
        .value(
            "subscribe", \.subscribe, .choice,
            """
            Who may enter the rooms: `everyone`; `users`, who have a name; `token`, whose token names the room; \
            `nobody` but those whom the server subscribes. Clients without a protocol (`target: chat`) need `everyone`.
            """),
        .value(
            "publish", \.publish, .choice,
            """
            Who may publish: `everyone`, `users`, `members` of the room, those with a `token` for it, or `nobody`. For a `POST`, \
            which enters no room, `members` are those who may enter without a token for the room.
            """),
        .value(
            "read", \.read, .choice,
            "Who may ask for the history and for presence: as for `publish`. Others are refused with 103."),
        .value(
            "presence", \.hasPresence, .boolean, "Whether members can ask who is in the room; else 108."),
        .value(
            "join-leave", \.sendsJoinLeave, .boolean,
            "Whether members get a message when a client enters or leaves. In a room of n members each entry costs n messages."
        ),
    ]

    private static let historyKeys: [SettingsKey<RoomPolicy>] = [
        .value(
            .historySize, \.historySize, .integer(0...1_000_000),
            "Publications kept; 0 keeps none. Above it the oldest is removed."),
        .value(
            "history-time", \.historyTime, .duration(.seconds(1) ... .seconds(31_536_000)),
            "How long the history is kept after the last publication."),
        .value(
            "history-bytes", \.historyBytes, .size(1024...(1 << 30)),
            "Memory of one room's history. Above it the oldest publications are removed, down to one."),
        .value(
            .recovery, \.recovery, .choice,
            """
            What a reconnecting client gets: `stream`, everything it missed; `cache`, the newest publication if it \
            missed any; `off`, nothing. Requires `history-size`.
            """),
    ]

    private static let limitKeys: [SettingsKey<RoomPolicy>] = [
        .value(
            "max-message-size", \.maximumMessageSize, .size(1...(16 << 20)),
            "Largest publication of a client. A larger one is refused with 106."),
        .orNone(
            "publication-rate", \.publicationRate, .integer(1...1_000_000), example: "20",
            """
            Publications of one connection in a second, on average; those by `POST` of one user, or of one address without \
            a name, on all connections. Above it they are refused with 111. A connection begins with what the same \
            client has just published on one that ended.
            """),
        .value(
            "join-rate", \.joinRate, .integer(1...1_000_000),
            """
            With `join-leave`, entries of one connection into the rooms in a second, on average; at once those of half a \
            minute. Above it they are refused with 111. What a token or the server enters is not counted, nor are the \
            rooms in `subs` of `connect`.
            """),
        .orNone(
            "max-members", \.maximumMembers, .integer(1...10_000_000), example: "1000",
            "Members of one room on this gateway, in a cluster on each one. A further one is refused with 106."),
        .value(
            "slow-readers", \.slowReaders, .choice,
            """
            Beyond 4 MiB undelivered to a member, `disconnect` ends its connection with 3008; `drop-oldest` and \
            `skip-to-latest` let it lose messages, unless the room has recovery: then its subscription ends with 2500, \
            and it subscribes again and recovers what it missed.
            """),
        .value(
            "delta", \.deltas, .choice,
            """
            Whether a client that asks for it gets publications as differences to the one before: `fossil`, in this \
            format, where they are shorter; `none`, always whole. The gateway then keeps the newest publication of a room \
            with such members, and computes each difference once for all of them.
            """),
        .value(
            "tag-filters", \.allowsFilters, .boolean,
            """
            Whether a client may request only publications whose tags match its filter (`tf`); else its request is \
            refused with 107. It saves traffic, and hides nothing: the history shows all publications.
            """),
    ]

    mutating func check(_ section: SectionReader<RoomPolicy>) {
        if section.isSet(.recovery), self.recovery != .off, !self.keepsHistory {
            section.add(
                .recovery, expected: "recovery together with history-size",
                remedy: "add history-size: 100, or remove recovery")
        }
    }
}

extension ValueSyntax<RoomPattern> {
    /// `news:*`.
    package static var roomPattern: ValueSyntax {
        ValueSyntax(.text("news:*", "a room's name, in which `*` matches any text")) {
            text throws(ValueSyntaxError) in
            guard (1...255).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw ValueSyntaxError(expected: "a pattern of 1 to 255 bytes without control characters")
            }
            return RoomPattern(text)
        }
    }
}

extension ValueSyntax<PersonalRoom> {
    /// `#{user}`.
    fileprivate static var personalRoom: ValueSyntax {
        ValueSyntax(.text("#{user}", "a room's name with `{user}` in it")) { text throws(ValueSyntaxError) in
            guard text.utf8.count <= 255, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                text.ranges(of: PersonalRoom.placeholder).count == 1
            else {
                throw ValueSyntaxError(
                    expected: "a name of at most 255 bytes with {user} once and without control characters")
            }
            return PersonalRoom(description: text)
        }
    }
}

extension ValueSyntax<String> {
    /// The name of a header field.
    package static var headerName: ValueSyntax {
        ValueSyntax(.text("X-User", "the name of a header field")) { text throws(ValueSyntaxError) in
            guard NameText.isToken(text) else {
                throw ValueSyntaxError(expected: "a header name of letters, digits and !#$%&'*+-.^_`|~")
            }
            return text
        }
    }
}
