import WireText

/// The first commands of a connection: `HELLO 3` with user, password and name, or `AUTH` and `CLIENT SETNAME` on servers
/// that do not know it, then `SELECT`. One after the other, because each depends on the reply before.
struct RedisHandshake: Sendable {
    private enum Step: String {
        case hello = "HELLO"
        case authenticate = "AUTH"
        case name = "CLIENT SETNAME"
        case select = "SELECT"
    }

    enum Action: Equatable {
        case send(RedisCommand)
        case ready(RedisServerInfo)
        case fail(RedisConnectionFailure)
    }

    private let settings: RedisConnectionSettings
    private let clientName: String
    private var step: Step
    private var info = RedisServerInfo()

    /// - Returns: the handshake and its first action.
    static func begin(_ settings: RedisConnectionSettings) -> (RedisHandshake, Action) {
        var handshake = RedisHandshake(settings)
        let action = settings.usesRESP3 ? Action.send(handshake.hello) : handshake.authenticate()
        return (handshake, action)
    }

    private init(_ settings: RedisConnectionSettings) {
        self.settings = settings
        self.clientName = String(
            decoding: settings.clientName.utf8.map { $0.isVisibleASCII ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
        self.step = .hello
    }

    private var hello: RedisCommand {
        var command = RedisCommand("HELLO", 3)
        if let credentials = self.settings.credentials {
            command.arguments += ["AUTH", .text(credentials.user ?? "default"), .text(credentials.password)]
        }
        if !self.clientName.isEmpty { command.arguments += ["SETNAME", .text(self.clientName)] }
        return command
    }

    mutating func replied(_ reply: RedisValue) -> Action {
        switch self.step {
        case .hello: return self.helloReplied(reply)
        case .authenticate:
            if let failure = self.failure(reply) { return .fail(failure) }
            return self.name()
        case .name:
            // A name is only shown: an access list that forbids it is no reason to fail.
            return self.select()
        case .select:
            if let failure = self.failure(reply) { return .fail(failure) }
            return .ready(self.info)
        }
    }

    private mutating func helloReplied(_ reply: RedisValue) -> Action {
        if let info = RedisServerInfo(hello: reply) {
            self.info = info
            return self.select()
        }
        if let error = reply.serverError, error.isUnknownCommand || error.code == .noProtocol {
            return self.authenticate()
        }
        return .fail(self.failure(reply) ?? .violation(RedisViolation(.unexpectedReply, at: 0)))
    }

    /// `nil` for the simple string `OK`.
    private func failure(_ reply: RedisValue) -> RedisConnectionFailure? {
        if let error = reply.serverError {
            // A server that does not know the command quotes its arguments, so the password.
            let isSecret = self.step == .hello || self.step == .authenticate
            return .handshakeRefused(step: self.step.rawValue, isSecret ? error.withoutMessage : error)
        }
        if self.step != .hello, (try? reply.ok()) != nil { return nil }
        return .violation(RedisViolation(.unexpectedReply, at: 0))
    }

    private mutating func authenticate() -> Action {
        self.step = .authenticate
        guard let credentials = self.settings.credentials else { return self.name() }
        // Servers before Redis 6 have no users, and accept one argument only.
        let user = credentials.user == "default" ? nil : credentials.user
        let arguments = [user, credentials.password].compactMap(\.self).map(RedisArgument.text)
        return .send(RedisCommand("AUTH", arguments))
    }

    private mutating func name() -> Action {
        self.step = .name
        guard !self.clientName.isEmpty else { return self.select() }
        return .send(RedisCommand("CLIENT", "SETNAME", .text(self.clientName)))
    }

    private mutating func select() -> Action {
        self.step = .select
        guard self.settings.database != 0 else { return .ready(self.info) }
        return .send(RedisCommand("SELECT", .number(self.settings.database)))
    }
}
