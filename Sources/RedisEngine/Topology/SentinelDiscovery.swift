import WireText

/// Finds the primary of a name by asking sentinels, one after the other, and checks that what they name is a primary.
///
/// The owner connects to the server that an action names, sends the command, and reports the reply, or that there was
/// none. Source: Redis' guidelines for Sentinel clients.
package struct SentinelDiscovery: Sendable {
    /// Channel of every sentinel with news about its primaries.
    package static let switchChannel = "+switch-master"

    package enum Action: Equatable, Sendable {
        /// Send the command to this sentinel; report with `replied` or `failed`, at the deadline with `deadlineReached`.
        case ask(RedisEndpoint, RedisCommand, deadline: Duration)
        /// The same with the server that a sentinel named, with the credentials of the primary.
        case check(RedisEndpoint, RedisCommand, deadline: Duration)
        case found(RedisEndpoint)
        /// No sentinel named a primary; begin again after a pause.
        case failed([Failure])
        case ignore
    }

    /// Why one sentinel was of no use.
    package struct Failure: Error, Equatable, Sendable, CustomStringConvertible {
        package enum Reason: Equatable, Sendable {
            /// No reply before the deadline, or no connection.
            case unreachable
            /// It does not watch a primary of this name.
            case unknownName
            case refused(RedisServerError)
            case malformedReply
            /// The server that it named did not answer.
            case primaryUnreachable(RedisEndpoint)
            /// The server that it named is a replica: its failover is not complete.
            case notPrimary(RedisEndpoint)
        }

        package let sentinel: RedisEndpoint
        package let reason: Reason

        package var description: String {
            switch self.reason {
            case .unreachable: "the sentinel \(self.sentinel) did not answer"
            case .unknownName: "the sentinel \(self.sentinel) watches no primary of this name"
            case .refused(let error): "the sentinel \(self.sentinel) refused: \(error)"
            case .malformedReply: "the sentinel \(self.sentinel) answered with something else than an address"
            case .primaryUnreachable(let primary): "\(primary), which \(self.sentinel) named, did not answer"
            case .notPrimary(let primary): "\(primary), which \(self.sentinel) named, is no primary"
            }
        }
    }

    private enum Phase: Equatable {
        case idle
        case asking(sentinel: Int, deadline: Duration)
        case checking(sentinel: Int, RedisEndpoint, deadline: Duration)
    }

    private let name: String
    private let stepTimeout: Duration
    private var sentinels: [RedisEndpoint]
    private var phase = Phase.idle
    private var failures: [Failure] = []

    /// - Parameters:
    ///   - name: of the primary in the sentinels' configuration.
    ///   - stepTimeout: for each sentinel, and for each server that one names.
    package init(sentinels: [RedisEndpoint], name: String, stepTimeout: Duration = .seconds(2)) {
        self.sentinels = sentinels
        self.name = name
        self.stepTimeout = stepTimeout
    }

    package var nextDeadline: Duration? {
        switch self.phase {
        case .idle: nil
        case .asking(_, let deadline), .checking(_, _, let deadline): deadline
        }
    }

    /// Begins, from the sentinel that answered last on.
    package mutating func start(now: Duration) -> Action {
        guard self.phase == .idle else { return .ignore }
        self.failures = []
        return self.ask(0, now: now)
    }

    private mutating func ask(_ index: Int, now: Duration) -> Action {
        guard index < self.sentinels.count else {
            self.phase = .idle
            return .failed(self.failures)
        }
        let deadline = now + self.stepTimeout
        self.phase = .asking(sentinel: index, deadline: deadline)
        let command = RedisCommand("SENTINEL", "get-master-addr-by-name", .text(self.name))
        return .ask(self.sentinels[index], command, deadline: deadline)
    }

    /// The server answered the command of the last action.
    package mutating func replied(_ reply: RedisValue, now: Duration) -> Action {
        switch self.phase {
        case .idle: return .ignore
        case .asking(let sentinel, _):
            switch Self.primary(reply) {
            case .success(let primary):
                let deadline = now + self.stepTimeout
                self.phase = .checking(sentinel: sentinel, primary, deadline: deadline)
                return .check(primary, RedisCommand("ROLE"), deadline: deadline)
            case .failure(let reason): return self.askNext(after: sentinel, reason, now: now)
            }
        case .checking(let sentinel, let primary, _):
            guard let role = try? reply.array().first?.text(), role == "master" else {
                return self.askNext(after: sentinel, .notPrimary(primary), now: now)
            }
            self.phase = .idle
            // The sentinel that answered is the first of the next round.
            self.sentinels.insert(self.sentinels.remove(at: sentinel), at: 0)
            return .found(primary)
        }
    }

    /// There is no connection to the server of the last action, or it ended.
    package mutating func failed(now: Duration) -> Action {
        switch self.phase {
        case .idle: return .ignore
        case .asking(let sentinel, _): return self.askNext(after: sentinel, .unreachable, now: now)
        case .checking(let sentinel, let primary, _):
            return self.askNext(after: sentinel, .primaryUnreachable(primary), now: now)
        }
    }

    package mutating func deadlineReached(now: Duration) -> Action {
        guard let deadline = self.nextDeadline, deadline <= now else { return .ignore }
        return self.failed(now: now)
    }

    private mutating func askNext(after sentinel: Int, _ reason: Failure.Reason, now: Duration) -> Action {
        self.failures.append(Failure(sentinel: self.sentinels[sentinel], reason: reason))
        return self.ask(sentinel + 1, now: now)
    }

    private static func primary(_ reply: RedisValue) -> Result<RedisEndpoint, Failure.Reason> {
        if let error = reply.serverError { return .failure(.refused(error)) }
        if reply.isNull { return .failure(.unknownName) }
        guard let parts = try? reply.array(), parts.count == 2, let host = try? parts[0].text(), !host.isEmpty,
            let port = try? parts[1].int(), (1...65535).contains(port)
        else { return .failure(.malformedReply) }
        return .success(RedisEndpoint(host: host, port: Int(port)))
    }

    /// Reads a message of `switchChannel`: a hint only, since messages can be lost and late.
    /// - Returns: the new primary, if the message is about this name.
    package func newPrimary(inMessage payload: [UInt8]) -> RedisEndpoint? {
        let words = String(decoding: payload, as: UTF8.self).split(separator: " ")
        guard words.count == 5, words[0] == self.name, let port = String(words[4]).decimal, (1...65535).contains(port)
        else { return nil }
        return RedisEndpoint(host: String(words[3]), port: Int(port))
    }
}

extension SentinelDiscovery.Failure.Reason: Error {}
