import ByteKernels
import RedisEngine
import TestSupport
import Testing

@Suite("Replies of a real server")
struct RecordedReplyTests {
    @Test(arguments: RecordedReply.all)
    func everyRecordedReplyIsReadInAnySplit(_ reply: RecordedReply) throws {
        let whole = Readings.of([reply.bytes])
        #expect(whole.violation == nil)
        #expect(!whole.values.isEmpty)
        for cut in 1..<reply.bytes.count {
            #expect(Readings.of([Array(reply.bytes[..<cut]), Array(reply.bytes[cut...])]) == whole)
        }
        #expect(Readings.of(reply.bytes.map { [$0] }) == whole)
        #expect(Readings.of([Array(reply.bytes.dropLast())]).values.count == whole.values.count - 1)
    }

    private func value(_ reply: RecordedReply) throws -> RedisValue {
        try #require(Readings.of([reply.bytes]).values.last)
    }

    @Test func streamEntriesAreReadable() throws {
        let entries = try self.value(.range).array()
        #expect(try entries.map { try $0.array()[0].text() } == ["1700000000000-1", "1700000000000-2"])
        let fields = try entries[0].array()[1].map()
        #expect(try fields["data"]?.text() == "héllo")
        #expect(try fields["from"]?.text() == "anna")
        #expect(try entries[1].array()[1].map()["data"]?.text() == "two\r\nlines")
        let streams = try self.value(.read).map()
        #expect(try streams["room:{lobby}"]?.array() == entries)
        #expect(try self.value(.readNothing).isNull)
        #expect(try self.value(.addToStream).text() == "1700000000000-1")
    }

    @Test func presenceIsReadableWithBothProtocols() throws {
        #expect(try self.value(.allFields).map()["c1"]?.text() == #"{"user":"anna"}"#)
        #expect(try self.value(.allFieldsRESP2).map()["a"]?.int() == 1)
        let scores = try self.value(.rangeWithScores).array().map { try $0.array()[1].double() }
        #expect(scores == [-.infinity, 1.5, .infinity])
        #expect(try self.value(.rangeWithScoresRESP2).map()["m"]?.double() == 2.5)
        #expect(try self.value(.setMembers) == .set([.blob("x")]))
        #expect(try self.value(.missing).isNull && self.value(.missingRESP2).isNull && self.value(.noListRESP2).isNull)
    }

    @Test func scriptsReturnEveryType() throws {
        let all = try self.value(.script).array()
        #expect(
            all == [
                .number(1), .blob("two"), .null, .array([.number(3), .array([.number(4)])]), .simple("FINE"),
                .error("MY error"),
            ])
        #expect(try self.value(.scriptDouble) == .double(3.25))
        #expect(try self.value(.scriptMap) == .map([.init(.blob("a"), .number(1))]))
        #expect(try self.value(.scriptBigNumber) == .bigNumber("123456789012345678901234567890"))
        #expect(try self.value(.scriptBoolean) == .boolean(true))
        #expect(try self.value(.scriptVerbatim) == .verbatimString(format: "txt", Array("hello".utf8)))
        #expect(try self.value(.transaction).array().map { $0.serverError?.code } == [nil, .wrongType])
    }

    struct ErrorVector: Sendable {
        let reply: RecordedReply
        let code: RedisServerError.Code

        init(_ reply: RecordedReply, _ code: RedisServerError.Code) {
            self.reply = reply
            self.code = code
        }
    }

    private static let other = RedisRedirection(host: "127.0.0.1", port: 44959)

    @Test(arguments: [
        ErrorVector(.helloWithoutPassword, .noAuthentication), ErrorVector(.getWithoutPassword, .noAuthentication),
        ErrorVector(.helloWithWrongPassword, .wrongPassword), ErrorVector(.selectTooLarge, .generic),
        ErrorVector(.unknownScript, .noScript), ErrorVector(.wrongType, .wrongType),
        ErrorVector(.unknownCommand, .generic), ErrorVector(.failedScript, .generic),
        ErrorVector(.unsupportedProtocol, .noProtocol), ErrorVector(.outOfMemory, .outOfMemory),
        ErrorVector(.busy, .busy), ErrorVector(.readOnly, .readOnly), ErrorVector(.masterDown, .masterDown),
        ErrorVector(.forbiddenCommand, .noPermission), ErrorVector(.forbiddenKey, .noPermission),
        ErrorVector(.noSlots, .clusterDown), ErrorVector(.moved, .moved(slot: 12182, Self.other)),
        ErrorVector(.movedSubscription, .moved(slot: 12182, Self.other)), ErrorVector(.crossSlot, .crossSlot),
        ErrorVector(.ask, .ask(slot: 5061, Self.other)), ErrorVector(.tryAgain, .tryAgain),
    ])
    func errorsHaveTheirCodes(_ vector: ErrorVector) throws {
        #expect(try self.value(vector.reply).serverError?.code == vector.code)
    }
}

@Suite("Errors of the server")
struct RedisServerErrorTests {
    @Test func redirectionsAreParsed() {
        func code(_ text: String) -> RedisServerError.Code { RedisServerError(text.utf8).code }
        let moved = RedisRedirection(host: "127.0.0.1", port: 6381)
        #expect(code("MOVED 3999 127.0.0.1:6381") == .moved(slot: 3999, moved))
        #expect(code("ASK 0 ::1:1") == .ask(slot: 0, RedisRedirection(host: "::1", port: 1)))
        #expect(code("MOVED 16383 :6381") == .moved(slot: 16383, RedisRedirection(host: "", port: 6381)))
        let asked = RedisEndpoint(host: "a", port: 1)
        #expect(RedisRedirection(host: "", port: 2).resolved(from: asked) == RedisEndpoint(host: "a", port: 2))
        #expect(RedisRedirection(host: "?", port: 2).resolved(from: asked) == RedisEndpoint(host: "a", port: 2))
        #expect(RedisRedirection(host: "b", port: 2).resolved(from: asked) == RedisEndpoint(host: "b", port: 2))
    }

    @Test(arguments: [
        "MOVED", "MOVED 1", "MOVED x 127.0.0.1:6381", "MOVED 16384 a:1", "MOVED -1 a:1", "ASK 1 a", "ASK 1 a:0",
        "ASK 1 a:65536", "ASK 1 a:", "ASK 99999999999999999999 a:1", "moved 1 a:1", "", " ", "LOADINGS",
    ])
    func malformedRedirectionsAndUnknownCodesAreOther(_ text: String) {
        #expect(RedisServerError(text.utf8).code == .other)
    }

    @Test func descriptionsAreShort() {
        let error = RedisServerError(("ERR " + String(repeating: "x", count: 10_000)).utf8)
        #expect(error.description.count == 204)
        #expect(error.withoutMessage.description == "ERR")
        #expect(RedisServerError(String(repeating: "X", count: 100).utf8).codeWord.count == 64)
        #expect(RedisServerError([0x45, 0xFF, 0x20, 0xFE]).description == "E\u{FFFD} \u{FFFD}")
    }
}
