import ByteKernels
import WireText

/// One connection to a Redis server, without its socket: bytes and commands in, events and bytes out.
///
/// The owner passes received bytes to `nextEvent(in:at:now:)` until it returns `nil`, and sends what `takeOutput` returns
/// whenever the transport can take more. Commands are accepted from the beginning on and sent once the server is ready.
/// Instants are durations since any fixed instant.
package struct RedisConnection: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    package enum Event: Equatable, Sendable {
        /// The handshake is complete.
        case ready(RedisServerInfo)
        /// A command is answered, possibly with `.error`.
        case reply(RedisCommandID, RedisValue)
        /// - Parameter completes: the command that this push completes, if it confirms its last channel.
        case push(RedisPush, completes: RedisCommandID?)
        /// The connection is over: close the transport. No other event follows.
        case ended(RedisConnectionFailure, RedisAbandonedCommands)
    }

    private enum Phase {
        /// The transport connects.
        case connecting
        case handshaking(RedisHandshake, deadline: Duration)
        case ready(lastReceived: Duration)
        case ended
    }

    private let settings: RedisConnectionSettings
    private var phase = Phase.connecting
    private var reader: RedisReplyReader
    private var queue = CommandQueue()
    private var handshakeOutput: [UInt8] = []
    private var nextNumber: UInt64 = 0
    private var usesPushes = false
    /// Subscriptions to channels and patterns, and those to shard channels.
    private var channelCount = 0
    private var shardChannelCount = 0
    /// Commands for subscriptions that are not answered.
    private var pendingSubscriptions = 0
    /// Reported before anything else is read.
    private var pendingFailure: RedisConnectionFailure?

    package init(settings: RedisConnectionSettings = RedisConnectionSettings()) {
        self.settings = settings
        self.reader = RedisReplyReader(limits: settings.replyLimits)
    }

    package var isReady: Bool {
        if case .ready = self.phase { true } else { false }
    }

    /// Without the bytes of commands, which may be secret.
    package var description: String {
        let state =
            switch self.phase {
            case .connecting: "connecting"
            case .handshaking: "in its handshake"
            case .ready: "ready"
            case .ended: "ended"
            }
        return "a connection to Redis: \(state), \(self.queue.count) unanswered commands"
    }

    package var debugDescription: String { self.description }

    /// Commands that are not answered.
    package var unansweredCount: Int { self.queue.count }

    /// When `deadlineReached` must be called; `nil` before the transport is connected and after the end.
    package var nextDeadline: Duration? {
        let command = self.queue.deadline?.instant
        switch self.phase {
        case .connecting: return command
        case .handshaking(_, let deadline): return min(deadline, command ?? deadline)
        case .ready(let lastReceived): return command ?? lastReceived + self.settings.pingInterval
        case .ended: return nil
        }
    }

    // MARK: Transport

    /// The transport is connected, with TLS if it uses TLS.
    /// - Returns: an event if there is nothing to negotiate.
    package mutating func connected(now: Duration) -> Event? {
        guard case .connecting = self.phase else { return nil }
        let (handshake, action) = RedisHandshake.begin(self.settings)
        self.phase = .handshaking(handshake, deadline: now + self.settings.handshakeTimeout)
        return self.perform(action, now: now)
    }

    /// Takes bytes for the server. What is taken counts as sent.
    /// - Parameter limit: in bytes; the rest stays for the next call.
    package mutating func takeOutput(limit: Int = .max) -> [UInt8] {
        guard !self.handshakeOutput.isEmpty else { return self.isReady ? self.queue.takeOutput(limit: limit) : [] }
        let part = Array(self.handshakeOutput.prefix(max(limit, 0)))
        self.handshakeOutput.removeFirst(part.count)
        guard self.handshakeOutput.isEmpty, self.isReady else { return part }
        return part + self.queue.takeOutput(limit: limit - part.count)
    }

    /// Whether `takeOutput` would return bytes.
    package var hasOutput: Bool { !self.handshakeOutput.isEmpty || self.isReady && self.queue.hasOutput }

    /// Parses received bytes from offset `position` on, and advances it.
    /// - Returns: the next event; `nil` when all bytes are consumed.
    package mutating func nextEvent(in bytes: RawSpan, at position: inout Int, now: Duration) -> Event? {
        if let failure = self.pendingFailure.take() { return self.end(failure) }
        while position < bytes.byteCount {
            switch self.phase {
            case .ended:
                position = bytes.byteCount
                return nil
            case .connecting:
                // Bytes imply a connection; no server speaks first.
                return self.violated(.unrequestedReply)
            case .handshaking: break
            case .ready: self.phase = .ready(lastReceived: now)
            }
            do {
                guard let value = try self.reader.read(bytes, consumed: &position) else { return nil }
                if let event = self.received(value, now: now) { return event }
            } catch {
                return self.end(.violation(error))
            }
        }
        return nil
    }

    /// The transport has ended.
    package mutating func transportEnded() -> Event? {
        if case .ended = self.phase { return nil }
        return self.end(self.pendingFailure.take() ?? .lost)
    }

    /// The owner closes the connection. Commands are abandoned.
    package mutating func close() -> Event? {
        if case .ended = self.phase { return nil }
        return self.end(.closed)
    }

    /// `nextDeadline` is reached, or the owner's timer fired too early.
    ///
    /// Sends `PING` if the server was silent for long; ends the connection if a command was not answered in time, since
    /// no later reply can come before that one.
    package mutating func deadlineReached(now: Duration) -> Event? {
        guard let deadline = self.nextDeadline, deadline <= now else { return nil }
        if case .handshaking(_, let deadline) = self.phase, deadline <= now { return self.end(.handshakeTimeout) }
        guard let (_, kind) = self.queue.deadline else {
            self.queue.append(RedisCommand("PING"), .ping, deadline: now + self.settings.pongTimeout)
            return nil
        }
        switch kind {
        case .command(let id), .subscription(let id, _, _, _): return self.end(.commandTimeout(id))
        case .ping, .asking: return self.end(.pingTimeout)
        }
    }

    // MARK: Commands

    /// Names of commands that change what replies mean, or whether there are any.
    private static let reserved: Set<String> = [
        "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "HELLO",
        "AUTH", "SELECT", "RESET", "QUIT", "SYNC", "PSYNC", "ASKING",
    ]

    /// Queues a command.
    ///
    /// - Parameters:
    ///   - deadline: when the reply must be there. The whole connection ends if it is not.
    ///   - isAsking: whether `ASKING` precedes it, as after an `ASK` error.
    /// - Throws: above the limits of unanswered commands; nothing is queued then.
    package mutating func submit(
        _ command: RedisCommand, deadline: Duration, isAsking: Bool = false
    ) throws(RedisRefusal) -> RedisCommandID {
        let name = command.name.uppercased()
        let isReplyMode = name == "CLIENT" && command.firstWord == "REPLY"
        guard !Self.reserved.contains(name), !isReplyMode else { throw .reserved(command: name) }
        if self.isSubscribedWithRESP2 { throw .subscribedWithRESP2 }
        let asking = RedisCommand("ASKING")
        try self.checkLimits(command.encodedSize + (isAsking ? asking.encodedSize : 0), count: isAsking ? 2 : 1)
        if isAsking { self.queue.append(asking, .asking, deadline: deadline) }
        let id = self.makeID()
        self.queue.append(command, .command(id), deadline: deadline)
        return id
    }

    /// Begins or ends subscriptions. One push for each channel confirms them; the last completes the command.
    ///
    /// The reply is an event `.reply` only if the server refused.
    /// - Throws: as `submit` does.
    package mutating func changeSubscription(
        _ subscription: RedisSubscription, isSubscribed: Bool, channels: [[UInt8]], deadline: Duration
    ) throws(RedisRefusal) -> RedisCommandID {
        guard !channels.isEmpty else { throw .noChannels }
        let command = RedisCommand(
            isSubscribed ? subscription.subscribe : subscription.unsubscribe, channels.map(RedisArgument.bytes))
        try self.checkLimits(command.encodedSize, count: 1)
        let id = self.makeID()
        self.queue.append(
            command, .subscription(id, subscription, isSubscribed: isSubscribed, channels: channels),
            deadline: deadline)
        self.pendingSubscriptions += 1
        return id
    }

    private func checkLimits(_ size: Int, count: Int) throws(RedisRefusal) {
        if case .ended = self.phase { throw .ended }
        guard self.queue.count + count <= self.settings.maximumCommands else {
            throw .tooManyCommands(limit: self.settings.maximumCommands)
        }
        guard size <= self.settings.maximumCommandBytes - self.queue.byteCount else {
            throw .tooManyBytes(limit: self.settings.maximumCommandBytes)
        }
    }

    private mutating func makeID() -> RedisCommandID {
        self.nextNumber += 1
        return RedisCommandID(number: self.nextNumber)
    }

    private var hasSubscriptions: Bool {
        self.channelCount + self.shardChannelCount + self.pendingSubscriptions > 0
    }

    private var isSubscribedWithRESP2: Bool { self.isReady && !self.usesPushes && self.hasSubscriptions }

    // MARK: Values

    private mutating func received(_ value: RedisValue, now: Duration) -> Event? {
        switch self.phase {
        case .connecting, .ended: return nil
        case .handshaking(var handshake, let deadline):
            // With RESP3, pushes may come at any time.
            if case .push(let elements) = value { return self.pushed(elements) }
            let action = handshake.replied(value)
            self.phase = .handshaking(handshake, deadline: deadline)
            return self.perform(action, now: now)
        case .ready:
            if case .push(let elements) = value { return self.pushed(elements) }
            if case .array(let elements) = value, self.isPushOfRESP2(elements) { return self.pushed(elements) }
            return self.replied(value)
        }
    }

    private mutating func perform(_ action: RedisHandshake.Action, now: Duration) -> Event? {
        switch action {
        case .send(let command):
            self.handshakeOutput.append(redis: command)
            return nil
        case .ready(let info):
            self.phase = .ready(lastReceived: now)
            self.usesPushes = info.protocolVersion == 3
            return .ready(info)
        case .fail(let failure): return self.end(failure)
        }
    }

    /// Replies of commands that were sent before the first subscription are arrays too, but they precede its answer.
    private func isPushOfRESP2(_ elements: [RedisValue]) -> Bool {
        guard !self.usesPushes else { return false }
        let isExpected =
            switch self.queue.oldest {
            case .subscription: true
            case .command, .asking, .ping, nil: self.channelCount + self.shardChannelCount > 0
            }
        return isExpected && RedisPush.isPush(elements)
    }

    private mutating func pushed(_ elements: [RedisValue]) -> Event? {
        let push: RedisPush
        do {
            push = try RedisPush.parse(elements)
        } catch {
            return self.violated(error)
        }
        guard case .subscriptionChanged(let subscription, let isSubscribed, let channel, let count) = push else {
            return .push(push, completes: nil)
        }
        switch subscription {
        case .channel, .pattern: self.channelCount = count
        case .shard: self.shardChannelCount = count
        }
        let id = self.queue.confirm(subscription, isSubscribed: isSubscribed, channel: channel)
        if id != nil { self.pendingSubscriptions -= 1 }
        return .push(push, completes: id)
    }

    private mutating func replied(_ value: RedisValue) -> Event? {
        switch self.queue.oldest {
        case nil: return self.violated(.unrequestedReply)
        case .asking, .ping:
            self.queue.removeOldest()
            return nil
        case .subscription(let id, _, _, _):
            guard value.serverError != nil else { return self.violated(.unexpectedReply) }
            self.queue.removeOldest()
            self.pendingSubscriptions -= 1
            return .reply(id, value)
        case .command(let id):
            self.queue.removeOldest()
            if let error = value.serverError, error.code == .readOnly || error.code == .masterDown {
                // Another connection must be made, to the server that is the primary now.
                self.pendingFailure = .notPrimary(error)
            }
            return .reply(id, value)
        }
    }

    private mutating func violated(_ rule: RedisViolation.Rule) -> Event {
        self.end(.violation(RedisViolation(rule, at: 0)))
    }

    private mutating func end(_ failure: RedisConnectionFailure) -> Event {
        self.phase = .ended
        self.handshakeOutput = []
        self.pendingFailure = nil
        self.reader = RedisReplyReader(limits: self.settings.replyLimits)
        return .ended(failure, self.queue.abandon())
    }
}

extension RedisCommand {
    /// The first argument in capitals, of a command with subcommands.
    fileprivate var firstWord: String? {
        switch self.arguments.first {
        case .text(let text): text.uppercased()
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self).uppercased()
        case .number, nil: nil
        }
    }
}
