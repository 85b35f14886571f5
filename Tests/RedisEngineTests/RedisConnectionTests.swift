import ByteKernels
import RedisEngine
import TestSupport
import Testing

@Suite("Connection to Redis")
struct RedisConnectionTests {
    private typealias Event = RedisConnection.Event

    // MARK: Commands

    @Test func repliesBelongToCommandsInTheirOrder() throws {
        var harness = ConnectionHarness.ready()
        let first = try harness.submit("GET", "a")
        let second = try harness.submit("INCR", "b")
        let third = try harness.submit("LPUSH", "c", "x")
        #expect(first < second && second < third)
        #expect(harness.sent() == wire("GET", "a") + wire("INCR", "b") + wire("LPUSH", "c", "x"))
        #expect(
            harness.receive("$1\r\nx\r\n:5\r\n-WRONGTYPE no\r\n") == [
                .reply(first, .blob("x")), .reply(second, .number(5)), .reply(third, .error("WRONGTYPE no")),
            ])
        #expect(harness.connection.unansweredCount == 0)
    }

    @Test func conversationIsTheSameInAnySplit() throws {
        func events(_ pieces: [[UInt8]]) throws -> [RedisConnection.Event] {
            var harness = ConnectionHarness.ready()
            for command in ["XADD", "XRANGE", "HGETALL", "EVAL", "EVALSHA"] { _ = try harness.submit(command) }
            _ = try harness.subscribe(.channel, "news", "sport")
            _ = harness.sent()
            return pieces.flatMap { harness.receive($0) }
        }
        let replies: [RecordedReply] = [
            .addToStream, .range, .allFields, .script, .unknownScript, .subscribe, .messages, .invalidation,
        ]
        let bytes = replies.flatMap(\.bytes)
        let whole = try events([bytes])
        #expect(whole.count == 5 + 2 + 3 + 1)
        #expect(try events(bytes.map { [$0] }) == whole)
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20 {
            #expect(try events(generator.cuts(of: bytes.count, longest: 30).map { Array(bytes[$0]) }) == whole)
        }
    }

    @Test func askingPrecedesACommandAndIsNoReply() throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.connection.submit(
            RedisCommand("GET", "bar"), deadline: harness.now + .seconds(1), isAsking: true)
        #expect(harness.sent() == wire("ASKING") + wire("GET", "bar"))
        #expect(harness.receive(RecordedReply.asking.bytes) == [.reply(id, .null)])
        #expect(harness.connection.unansweredCount == 0)
    }

    @Test(arguments: [
        "SUBSCRIBE", "psubscribe", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "Hello",
        "AUTH", "SELECT", "RESET", "QUIT", "SYNC", "PSYNC", "ASKING",
    ])
    func commandThatChangesTheConnectionIsRefused(_ name: String) {
        var harness = ConnectionHarness.ready()
        #expect(throws: RedisRefusal.reserved(command: name.uppercased())) { try harness.submit(name, "x") }
        #expect(harness.sent() == "")
    }

    @Test func replyModeIsRefused() throws {
        var harness = ConnectionHarness.ready()
        #expect(throws: RedisRefusal.reserved(command: "CLIENT")) { try harness.submit("client", "reply", "OFF") }
        #expect(throws: RedisRefusal.reserved(command: "CLIENT")) {
            try harness.submit("CLIENT", .bytes(Array("Reply".utf8)), "SKIP")
        }
        _ = try harness.submit("CLIENT", "TRACKING", "ON")
    }

    // MARK: Limits

    @Test func commandsAboveTheirNumberAreRefused() throws {
        var settings = RedisConnectionSettings()
        settings.maximumCommands = 3
        var harness = ConnectionHarness.ready(settings)
        for _ in 0..<3 { _ = try harness.submit("PING") }
        #expect(throws: RedisRefusal.tooManyCommands(limit: 3)) { try harness.submit("PING") }
        #expect(throws: RedisRefusal.tooManyCommands(limit: 3)) { try harness.subscribe(.channel, "a") }
        // Sending makes no place: the commands are unanswered.
        #expect(harness.sent() == wire("PING") + wire("PING") + wire("PING"))
        #expect(throws: RedisRefusal.tooManyCommands(limit: 3)) { try harness.submit("PING") }
        _ = harness.receive("+PONG\r\n")
        #expect(throws: RedisRefusal.tooManyCommands(limit: 3)) {
            try harness.connection.submit(RedisCommand("GET", "a"), deadline: harness.now, isAsking: true)
        }
        _ = try harness.submit("PING")
    }

    @Test func commandsAboveTheirBytesAreRefused() throws {
        let size = RedisCommand("GET", "a").encodedSize
        var settings = RedisConnectionSettings()
        settings.maximumCommandBytes = size * 2
        var harness = ConnectionHarness.ready(settings)
        _ = try harness.submit("GET", "a")
        #expect(throws: RedisRefusal.tooManyBytes(limit: size * 2)) { try harness.submit("GET", "ab") }
        _ = try harness.submit("GET", "b")
        _ = harness.sent()
        #expect(throws: RedisRefusal.tooManyBytes(limit: size * 2)) { try harness.submit("PING") }
        _ = harness.receive("_\r\n")
        _ = try harness.submit("GET", "c")
    }

    // MARK: Deadlines

    @Test func unansweredCommandEndsTheConnectionAtItsDeadline() throws {
        var harness = ConnectionHarness.ready()
        let first = try harness.submit("GET", "a", within: .seconds(2))
        _ = harness.sent()
        let second = try harness.submit("GET", "b", within: .seconds(4))
        #expect(harness.connection.nextDeadline == harness.now + .seconds(2))
        #expect(harness.passTime(.milliseconds(1999)) == nil)
        #expect(
            harness.passTime(.milliseconds(1))
                == .ended(.commandTimeout(first), RedisAbandonedCommands(unsent: [second], uncertain: [first])))
        #expect(throws: RedisRefusal.ended) { try harness.submit("GET", "c") }
    }

    @Test func earlierDeadlineOfALaterCommandCounts() throws {
        var harness = ConnectionHarness.ready()
        let start = harness.now
        let slow = try harness.submit("XREAD", within: .seconds(9))
        let fast = try harness.submit("GET", within: .seconds(1))
        let middle = try harness.submit("GET", within: .seconds(5))
        #expect(harness.connection.nextDeadline == start + .seconds(1))
        #expect(harness.receive("_\r\n") == [.reply(slow, .null)])
        #expect(harness.connection.nextDeadline == start + .seconds(1))
        #expect(harness.receive("_\r\n") == [.reply(fast, .null)])
        #expect(harness.connection.nextDeadline == start + .seconds(5))
        #expect(harness.receive("_\r\n") == [.reply(middle, .null)])
        #expect(harness.connection.nextDeadline == start + .seconds(15))
    }

    @Test func deadlineIsTheEarliestOfAllUnanswered() throws {
        var generator = SeededGenerator(seed: 11)
        var harness = ConnectionHarness.ready()
        var deadlines: [Duration] = []
        for _ in 0..<500 {
            if deadlines.isEmpty || Bool.random(using: &generator) {
                let time = Duration.milliseconds(Int.random(in: 1...1000, using: &generator))
                _ = try harness.submit("GET", within: time)
                deadlines.append(harness.now + time)
            } else {
                _ = harness.receive(":1\r\n")
                deadlines.removeFirst()
            }
            #expect(harness.connection.nextDeadline == deadlines.min() ?? harness.now + .seconds(15))
        }
    }

    @Test func idleConnectionIsPinged() {
        var harness = ConnectionHarness.ready()
        #expect(harness.passTime(.milliseconds(14_999)) == nil)
        #expect(harness.sent() == "")
        #expect(harness.passTime(.milliseconds(1)) == nil)
        #expect(harness.sent() == wire("PING"))
        #expect(harness.receive("+PONG\r\n") == [])
        #expect(harness.connection.nextDeadline == harness.now + .seconds(15))
        #expect(harness.passTime(.seconds(15)) == nil)
        #expect(harness.passTime(.seconds(5)) == .ended(.pingTimeout, RedisAbandonedCommands()))
    }

    @Test func messagesPostponeThePing() throws {
        var harness = ConnectionHarness.ready()
        _ = try harness.subscribe(.channel, "news", "sport")
        _ = harness.receive(RecordedReply.subscribe.bytes)
        _ = harness.sent()
        #expect(harness.passTime(.seconds(10)) == nil)
        _ = harness.receive(RecordedReply.messages.bytes)
        #expect(harness.passTime(.seconds(10)) == nil)
        #expect(harness.sent() == "")
        #expect(harness.passTime(.seconds(5)) == nil)
        #expect(harness.sent() == wire("PING"))
        #expect(harness.receive(RecordedReply.pingWithSubscriptions.bytes) == [])
    }

    // MARK: The end

    @Test func endTellsWhatWasSentFromWhatWasNot() throws {
        var harness = ConnectionHarness.ready()
        let answered = try harness.submit("GET", "a")
        let sent = try harness.submit("GET", "b")
        let partly = try harness.submit("GET", "c")
        let unsent = try harness.submit("GET", "d")
        let size = wire("GET", "a").utf8.count
        #expect(harness.sent(limit: 3 * size - 1).utf8.count == 3 * size - 1)
        #expect(harness.receive(Array("_\r\n".utf8), isSending: false) == [.reply(answered, .null)])
        #expect(
            harness.connection.transportEnded()
                == .ended(.lost, RedisAbandonedCommands(unsent: [partly, unsent], uncertain: [sent])))
        #expect(harness.connection.transportEnded() == nil)
        #expect(harness.sent() == "")
    }

    @Test func lastByteMakesACommandUncertain() throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.submit("GET", "a")
        let size = wire("GET", "a").utf8.count
        #expect(harness.sent(limit: size - 1).utf8.count == size - 1)
        #expect(harness.sent(limit: 1) == "\n")
        #expect(harness.connection.close() == .ended(.closed, RedisAbandonedCommands(uncertain: [id])))
    }

    @Test func outputTakenInAnyPartsIsTheSame() throws {
        var generator = SeededGenerator(seed: 5)
        var harness = ConnectionHarness.ready()
        var expected = ""
        var sent = ""
        for number in 0..<300 {
            _ = try harness.submit("SET", "key", .number(number))
            expected += wire("SET", "key", String(number))
            sent += harness.sent(limit: Int.random(in: 0...60, using: &generator))
        }
        sent += harness.sent()
        #expect(sent == expected)
    }

    @Test(arguments: ["-READONLY You can't write against a read only replica.", "-MASTERDOWN Link with MASTER is down"])
    func formerPrimaryEndsTheConnectionAfterItsReply(_ line: String) throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.submit("SET", "a", "b")
        let next = try harness.submit("SET", "c", "d")
        _ = harness.sent()
        let error = RedisServerError(line.dropFirst().utf8)
        #expect(
            harness.receive(line + "\r\n+OK\r\n") == [
                .reply(id, .error(error)), .ended(.notPrimary(error), RedisAbandonedCommands(uncertain: [next])),
            ])
    }

    @Test func transportThatEndsAfterSuchAReplyIsStillNoPrimary() throws {
        var harness = ConnectionHarness.ready()
        _ = try harness.submit("SET", "a", "b")
        _ = harness.sent()
        var position = 0
        let bytes = Array("-READONLY no\r\n".utf8)
        _ = harness.connection.nextEvent(in: bytes.span.bytes, at: &position, now: harness.now)
        let error = RedisServerError("READONLY no".utf8)
        #expect(harness.connection.transportEnded() == .ended(.notPrimary(error), RedisAbandonedCommands()))
    }

    @Test(arguments: ["+OK\r\n", "-ERR max number of clients reached\r\n", "*1\r\n+message\r\n"])
    func replyToNoCommandEndsTheConnection(_ reply: String) {
        var harness = ConnectionHarness.ready()
        let violation = RedisViolation(.unrequestedReply, at: 0)
        #expect(harness.receive(reply) == [.ended(.violation(violation), RedisAbandonedCommands())])
    }

    @Test(arguments: [0, 1])
    func replyToACommandThatWasNotSentEndsTheConnection(_ missing: Int) throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.submit("GET", "a")
        _ = harness.sent(limit: missing == 0 ? 0 : wire("GET", "a").utf8.count - 1)
        let violation = RedisViolation(.unrequestedReply, at: 0)
        #expect(
            harness.receive(Array("-ERR max number of clients reached\r\n".utf8), isSending: false)
                == [.ended(.violation(violation), RedisAbandonedCommands(unsent: [id]))])
    }

    @Test func violationEndsTheConnection() throws {
        var harness = ConnectionHarness.ready()
        let id = try harness.submit("GET", "a")
        _ = harness.sent()
        let violation = RedisViolation(.unknownType(UInt8(ascii: "H")), at: 1)
        #expect(
            harness.receive("HTTP/1.1 200 OK\r\n")
                == [.ended(.violation(violation), RedisAbandonedCommands(uncertain: [id]))])
        #expect(harness.receive("+OK\r\n") == [])
    }
}
