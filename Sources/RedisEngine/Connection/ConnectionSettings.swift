/// User and password of a server. No description of it contains the password.
package struct RedisCredentials: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// `nil` is the user `default`.
    package let user: String?
    package let password: String

    package init(user: String? = nil, password: String) {
        self.user = user
        self.password = password
    }

    package var description: String { "the password of the user \(self.user ?? "default")" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: ["user": self.user ?? "default"]) }
}

/// Handshake and limits of a connection.
package struct RedisConnectionSettings: Equatable, Sendable {
    package var credentials: RedisCredentials?
    /// Shown by `CLIENT LIST`. Empty for none; spaces and control characters become `-`.
    package var clientName = ""
    /// Number of the database; 0 is every connection's first one.
    package var database = 0
    /// Whether to begin with `HELLO 3`. Servers that do not know it get RESP2 anyway; some proxies hang up.
    package var usesRESP3 = true
    /// Time from the transport's connection until the server is ready. Default: 5 seconds.
    package var handshakeTimeout = Duration.seconds(5)
    /// Silence of the server after which it gets a `PING`; only while no command is unanswered. Default: 15 seconds.
    package var pingInterval = Duration.seconds(15)
    /// Time in which a `PING` must be answered. Default: 5 seconds.
    package var pongTimeout = Duration.seconds(5)
    /// Commands that are unanswered, sent or not. A further one is refused. Default: 1024.
    package var maximumCommands = 1024
    /// Bytes of commands that are unanswered, sent or not. Default: 8 MiB.
    package var maximumCommandBytes = 8 << 20
    package var replyLimits = RedisReplyLimits()

    package init() {}
}

/// Identifies a command on its connection.
package struct RedisCommandID: Hashable, Sendable, Comparable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }

    package static func < (left: RedisCommandID, right: RedisCommandID) -> Bool { left.number < right.number }
}

/// Why a command was not accepted. Nothing of it was sent.
package enum RedisRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    case tooManyCommands(limit: Int)
    case tooManyBytes(limit: Int)
    /// The connection has ended.
    case ended
    /// The command changes what later replies mean, so the connection sends it by itself, or not at all.
    case reserved(command: String)
    /// A RESP2 connection with subscriptions accepts no other commands: use another connection.
    case subscribedWithRESP2
    /// A subscription without channels.
    case noChannels

    package var description: String {
        switch self {
        case .tooManyCommands(let limit): "more than \(limit) unanswered commands on one Redis connection"
        case .tooManyBytes(let limit): "more than \(limit) bytes of unanswered commands on one Redis connection"
        case .ended: "the Redis connection has ended"
        case .reserved(let command): "\(command) is not sent as an ordinary command on a Redis connection"
        case .subscribedWithRESP2: "this Redis connection has subscriptions and RESP2; use another for commands"
        case .noChannels: "a subscription needs at least one channel"
        }
    }
}

/// Why a connection ended.
package enum RedisConnectionFailure: Error, Equatable, Sendable, CustomStringConvertible {
    case violation(RedisViolation)
    /// The server did not accept a step of the handshake: `HELLO`, `AUTH` or `SELECT`.
    case handshakeRefused(step: String, RedisServerError)
    case handshakeTimeout
    /// A command was not answered in time. Replies are in order, so no later one can be trusted to come.
    case commandTimeout(RedisCommandID)
    case pingTimeout
    /// The server is no primary any more.
    case notPrimary(RedisServerError)
    /// The transport ended.
    case lost
    /// The owner closed it.
    case closed

    package var description: String {
        switch self {
        case .violation(let violation): "\(violation)"
        case .handshakeRefused(let step, let error): "Redis refused \(step): \(error)"
        case .handshakeTimeout: "Redis did not become ready in time"
        case .commandTimeout: "Redis did not answer a command in time"
        case .pingTimeout: "Redis did not answer PING in time"
        case .notPrimary(let error): "Redis is a replica now: \(error)"
        case .lost: "the connection to Redis was lost"
        case .closed: "the connection to Redis was closed"
        }
    }

    /// Whether another attempt with the same settings fails too, until an operator changes something.
    package var needsOperator: Bool {
        switch self {
        case .handshakeRefused(_, let error):
            switch error.code {
            case .noAuthentication, .wrongPassword, .noPermission, .generic, .noProtocol, .other: true
            case .moved, .ask, .tryAgain, .crossSlot, .clusterDown, .readOnly, .masterDown, .loading, .busy,
                .noScript, .outOfMemory, .wrongType:
                false
            }
        case .violation, .handshakeTimeout, .commandTimeout, .pingTimeout, .notPrimary, .lost, .closed: false
        }
    }
}

/// What became of the commands that a connection had not answered when it ended, oldest first.
package struct RedisAbandonedCommands: Equatable, Sendable {
    /// The server did not get all bytes of these: they were surely not executed.
    package var unsent: [RedisCommandID] = []
    /// Sent and not answered: they may have been executed, or not.
    package var uncertain: [RedisCommandID] = []

    package init(unsent: [RedisCommandID] = [], uncertain: [RedisCommandID] = []) {
        self.unsent = unsent
        self.uncertain = uncertain
    }
}

/// The server's reply to `HELLO`.
package struct RedisServerInfo: Equatable, Sendable {
    /// `redis`, `valkey`; empty with RESP2.
    package var server = ""
    package var version = ""
    /// 2 or 3.
    package var protocolVersion = 2
    /// `standalone`, `sentinel` or `cluster`; empty with RESP2.
    package var mode = ""
    /// `master` or `replica`; empty with RESP2, and of a sentinel.
    package var role = ""

    package init() {}

    /// Whether it is Redis, and says that it is older than this version. Other programs have versions of their own.
    package func isRedis(before major: Int) -> Bool {
        guard self.server == "redis", let own = Int(self.version.prefix { $0 != "." }) else { return false }
        return own < major
    }

    /// - Returns: `nil` unless `reply` is what `HELLO` answers.
    init?(hello reply: RedisValue) {
        guard let entries = try? reply.map(), let version = try? entries["proto"]?.int(), (2...3).contains(version)
        else { return nil }
        self.protocolVersion = Int(version)
        func text(_ name: String) -> String { (try? entries[name]?.text()) ?? "" }
        self.server = text("server")
        self.version = text("version")
        self.mode = text("mode")
        self.role = text("role")
    }
}
