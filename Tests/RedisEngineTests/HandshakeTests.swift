import RedisEngine
import Testing

@Suite("Handshake with Redis")
struct HandshakeTests {
    /// As Redis 5 says it.
    private static let unknownHello =
        "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `s3cret`, \r\n"

    private static func settings(
        user: String? = nil, password: String? = nil, name: String = "", database: Int = 0
    ) -> RedisConnectionSettings {
        var settings = RedisConnectionSettings()
        settings.credentials = password.map { RedisCredentials(user: user, password: $0) }
        settings.clientName = name
        settings.database = database
        return settings
    }

    private var info: RedisServerInfo {
        var info = RedisServerInfo()
        info.server = "redis"
        info.version = "7.0.15"
        info.protocolVersion = 3
        info.mode = "standalone"
        info.role = "master"
        return info
    }

    @Test func helloSignsInAndNamesTheConnection() {
        var harness = ConnectionHarness(
            Self.settings(user: "anna", password: "s3cret", name: "sluice node\n1", database: 2))
        #expect(harness.connect() == nil)
        #expect(harness.sent() == wire("HELLO", "3", "AUTH", "anna", "s3cret", "SETNAME", "sluice-node-1"))
        #expect(harness.receive(RecordedReply.hello.bytes) == [])
        #expect(harness.sent() == wire("SELECT", "2"))
        #expect(!harness.connection.isReady)
        #expect(harness.receive("+OK\r\n") == [.ready(self.info)])
        #expect(harness.connection.isReady)
    }

    @Test func plainServerNeedsHelloOnly() {
        var harness = ConnectionHarness()
        #expect(harness.connect() == nil)
        #expect(harness.sent() == wire("HELLO", "3"))
        #expect(harness.receive(RecordedReply.hello.bytes) == [.ready(self.info)])
    }

    @Test func passwordAloneIsTheDefaultUsers() {
        var harness = ConnectionHarness(Self.settings(password: "s3cret"))
        _ = harness.connect()
        #expect(harness.sent() == wire("HELLO", "3", "AUTH", "default", "s3cret"))
    }

    @Test(arguments: [unknownHello, "-NOPROTO unsupported protocol version\r\n"])
    func serverWithoutHelloGetsTheOlderCommands(_ refusal: String) {
        var harness = ConnectionHarness(Self.settings(user: "anna", password: "s3cret", name: "n", database: 1))
        _ = harness.connect()
        _ = harness.sent()
        #expect(harness.receive(refusal) == [])
        #expect(harness.sent() == wire("AUTH", "anna", "s3cret"))
        #expect(harness.receive("+OK\r\n") == [])
        #expect(harness.sent() == wire("CLIENT", "SETNAME", "n"))
        #expect(harness.receive("-NOPERM no\r\n") == [])
        #expect(harness.sent() == wire("SELECT", "1"))
        #expect(harness.receive("+OK\r\n") == [.ready(RedisServerInfo())])
    }

    @Test func serversBeforeRedis6GetAPasswordWithoutUser() {
        var harness = ConnectionHarness(Self.settings(user: "default", password: "s3cret"))
        _ = harness.connect()
        _ = harness.receive(Self.unknownHello)
        _ = harness.sent()
        #expect(harness.receive("+OK\r\n") == [.ready(RedisServerInfo())])
        var other = ConnectionHarness(Self.settings(password: "s3cret"))
        _ = other.connect()
        _ = other.sent()
        _ = other.receive(Self.unknownHello)
        #expect(other.sent() == wire("AUTH", "s3cret"))
    }

    @Test func helloCanBeLeftOut() {
        var settings = RedisConnectionSettings()
        settings.usesRESP3 = false
        var harness = ConnectionHarness(settings)
        #expect(harness.connect() == .ready(RedisServerInfo()))
        #expect(harness.sent() == "")
    }

    @Test func answerOfAProxyWithRESP2IsAccepted() {
        var harness = ConnectionHarness()
        _ = harness.connect()
        var info = RedisServerInfo()
        info.server = "proxy"
        #expect(harness.receive("*4\r\n$6\r\nserver\r\n$5\r\nproxy\r\n$5\r\nproto\r\n:2\r\n") == [.ready(info)])
    }

    struct Refusal: Sendable {
        let replies: String
        let step: String
        let error: String
        var needsOperator = true
    }

    @Test(arguments: [
        Refusal(replies: "-WRONGPASS invalid s3cret\r\n", step: "HELLO", error: "WRONGPASS"),
        Refusal(replies: "-NOAUTH HELLO must\r\n", step: "HELLO", error: "NOAUTH"),
        Refusal(replies: "-ERR syntax s3cret\r\n", step: "HELLO", error: "ERR"),
        Refusal(replies: "-LOADING reading\r\n", step: "HELLO", error: "LOADING", needsOperator: false),
        Refusal(replies: unknownHello + "-ERR invalid s3cret\r\n", step: "AUTH", error: "ERR"),
        Refusal(replies: unknownHello + "+OK\r\n-ERR DB index\r\n", step: "SELECT", error: "ERR DB index"),
    ])
    func refusalNamesTheStepAndHidesWhatMayBeSecret(_ refusal: Refusal) throws {
        var harness = ConnectionHarness(Self.settings(password: "s3cret", database: 1))
        _ = harness.connect()
        let events = harness.receive(refusal.replies)
        #expect(events.count == 1)
        guard case .ended(let failure, RedisAbandonedCommands()) = try #require(events.first) else {
            Issue.record("\(events)")
            return
        }
        #expect("\(failure)" == "Redis refused \(refusal.step): \(refusal.error)")
        #expect(failure.needsOperator == refusal.needsOperator)
        #expect(!String(reflecting: events).contains("s3cret"))
    }

    @Test(arguments: ["+OK\r\n", "$5\r\nhello\r\n", "%0\r\n", "%1\r\n+proto\r\n:4\r\n", "%1\r\n+proto\r\n+x\r\n"])
    func answerThatIsNoneOfHelloEndsTheConnection(_ reply: String) {
        var harness = ConnectionHarness()
        _ = harness.connect()
        let violation = RedisViolation(.unexpectedReply, at: 0)
        #expect(harness.receive(reply) == [.ended(.violation(violation), RedisAbandonedCommands())])
    }

    @Test func handshakeHasADeadline() {
        var harness = ConnectionHarness()
        #expect(harness.connection.nextDeadline == nil)
        _ = harness.connect()
        #expect(harness.connection.nextDeadline == harness.now + .seconds(5))
        #expect(harness.passTime(.milliseconds(4999)) == nil)
        #expect(harness.passTime(.milliseconds(1)) == .ended(.handshakeTimeout, RedisAbandonedCommands()))
        #expect(harness.connection.nextDeadline == nil)
    }

    @Test func commandsWaitForTheHandshake() throws {
        var harness = ConnectionHarness(Self.settings(database: 1))
        let id = try harness.submit("GET", "a")
        #expect(harness.sent() == "")
        _ = harness.connect()
        #expect(harness.sent() == wire("HELLO", "3"))
        _ = harness.receive(RecordedReply.hello.bytes)
        #expect(harness.sent() == wire("SELECT", "1"))
        #expect(!harness.connection.hasOutput)
        #expect(harness.receive("+OK\r\n") == [.ready(self.info)])
        #expect(harness.sent() == wire("GET", "a"))
        #expect(harness.receive("$1\r\nx\r\n") == [.reply(id, .blob("x"))])
    }

    @Test func connectionIsDescribedWithoutItsBytes() {
        var harness = ConnectionHarness(Self.settings(password: "s3cret"))
        #expect("\(harness.connection)" == "a connection to Redis: connecting, 0 unanswered commands")
        _ = harness.connect()
        let description = String(reflecting: harness.connection)
        #expect(description == "a connection to Redis: in its handshake, 0 unanswered commands")
    }

    @Test func credentialsAreNotDescribed() {
        let credentials = RedisCredentials(user: "anna", password: "s3cret")
        var dumped = ""
        dump(Self.settings(user: "anna", password: "s3cret"), to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), dumped] {
            #expect(text.contains("anna") && !text.contains("s3cret"))
        }
        #expect("\(RedisCredentials(password: "s3cret"))" == "the password of the user default")
    }
}
