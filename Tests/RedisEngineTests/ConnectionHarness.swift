import ByteKernels
import RedisEngine

/// A connection with a clock that the test moves.
struct ConnectionHarness {
    var connection: RedisConnection
    var now = Duration.seconds(100)

    init(_ settings: RedisConnectionSettings = RedisConnectionSettings()) {
        self.connection = RedisConnection(settings: settings)
    }

    /// After `HELLO`, with RESP3; nothing is left to send.
    static func ready(_ settings: RedisConnectionSettings = RedisConnectionSettings()) -> ConnectionHarness {
        var harness = ConnectionHarness(settings)
        _ = harness.connect()
        _ = harness.receive(RecordedReply.hello.bytes)
        if settings.database != 0 { _ = harness.receive("+OK\r\n") }
        _ = harness.sent()
        return harness
    }

    /// After the refusal of `HELLO`, with RESP2; nothing is left to send.
    static func readyWithRESP2() -> ConnectionHarness {
        var harness = ConnectionHarness()
        _ = harness.connect()
        _ = harness.receive("-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n")
        _ = harness.sent()
        return harness
    }

    mutating func connect() -> RedisConnection.Event? { self.connection.connected(now: self.now) }

    mutating func receive(_ text: String) -> [RedisConnection.Event] { self.receive(Array(text.utf8)) }

    /// - Parameter isSending: whether everything that is to be sent leaves before.
    mutating func receive(_ bytes: [UInt8], isSending: Bool = true) -> [RedisConnection.Event] {
        if isSending { _ = self.connection.takeOutput() }
        var events: [RedisConnection.Event] = []
        var position = 0
        while let event = self.connection.nextEvent(in: bytes.span.bytes, at: &position, now: self.now) {
            events.append(event)
        }
        return events
    }

    /// Takes what is to be sent.
    mutating func sent(limit: Int = .max) -> String {
        String(decoding: self.connection.takeOutput(limit: limit), as: UTF8.self)
    }

    mutating func submit(
        _ name: String, _ arguments: RedisArgument..., within time: Duration = .seconds(1)
    ) throws(RedisRefusal) -> RedisCommandID {
        try self.connection.submit(RedisCommand(name, arguments), deadline: self.now + time)
    }

    mutating func subscribe(
        _ subscription: RedisSubscription = .channel, _ channels: String..., isSubscribed: Bool = true
    ) throws(RedisRefusal) -> RedisCommandID {
        try self.connection.changeSubscription(
            subscription, isSubscribed: isSubscribed, channels: channels.map { Array($0.utf8) },
            deadline: self.now + .seconds(1))
    }

    mutating func passTime(_ time: Duration) -> RedisConnection.Event? {
        self.now += time
        return self.connection.deadlineReached(now: self.now)
    }
}

/// A command as it is on the wire.
func wire(_ words: String...) -> String {
    var bytes: [UInt8] = []
    bytes.append(redis: RedisCommand(words[0], words.dropFirst().map(RedisArgument.text)))
    return String(decoding: bytes, as: UTF8.self)
}
