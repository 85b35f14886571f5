import ByteKernels
import RedisEngine
import TestSupport
import Testing

struct ReplyVector: CustomTestStringConvertible, Sendable {
    let wire: String
    let values: [RedisValue]

    init(_ wire: String, _ values: RedisValue...) {
        self.wire = wire
        self.values = values
    }

    var testDescription: String { self.wire.debugDescription }

    /// Examples of the RESP3 specification, in its order.
    static let specification: [ReplyVector] = [
        ReplyVector("*1\r\n$1\r\nA\r\n", .array([.blob("A")])),
        ReplyVector("*2\r\n*2\r\n:1\r\n:2\r\n#t\r\n", .array([.array([.number(1), .number(2)]), .boolean(true)])),
        ReplyVector("$11\r\nhello world\r\n", .blob("hello world")), ReplyVector("$0\r\n\r\n", .blob("")),
        ReplyVector("+hello world\r\n", .simple("hello world")),
        ReplyVector("-ERR this is the error description\r\n", .error("ERR this is the error description")),
        ReplyVector(":1234\r\n", .number(1234)), ReplyVector("_\r\n", .null), ReplyVector(",1.23\r\n", .double(1.23)),
        ReplyVector(":10\r\n", .number(10)), ReplyVector(",10\r\n", .double(10)),
        ReplyVector(",inf\r\n", .double(.infinity)), ReplyVector(",-inf\r\n", .double(-.infinity)),
        ReplyVector(",nan\r\n", .double(.nan)), ReplyVector("#t\r\n", .boolean(true)),
        ReplyVector("#f\r\n", .boolean(false)),
        ReplyVector("!21\r\nSYNTAX invalid syntax\r\n", .error("SYNTAX invalid syntax")),
        ReplyVector("=15\r\ntxt:Some string\r\n", .verbatimString(format: "txt", Array("Some string".utf8))),
        ReplyVector(
            "(3492890328409238509324850943850943825024385\r\n",
            .bigNumber("3492890328409238509324850943850943825024385")),
        ReplyVector("*3\r\n:1\r\n:2\r\n:3\r\n", .array([.number(1), .number(2), .number(3)])),
        ReplyVector(
            "*2\r\n*3\r\n:1\r\n$5\r\nhello\r\n:2\r\n#f\r\n",
            .array([.array([.number(1), .blob("hello"), .number(2)]), .boolean(false)])),
        ReplyVector(
            "%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n",
            .map([.init(.simple("first"), .number(1)), .init(.simple("second"), .number(2))])),
        ReplyVector(
            "~5\r\n+orange\r\n+apple\r\n#t\r\n:100\r\n:999\r\n",
            .set([.simple("orange"), .simple("apple"), .boolean(true), .number(100), .number(999)])),
        ReplyVector(
            "|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:2039123\r\n:9543892\r\n",
            .array([.number(2_039_123), .number(9_543_892)])),
        ReplyVector(
            "*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n", .array([.number(1), .number(2), .number(3)])),
        ReplyVector(
            ">3\r\n+message\r\n+somechannel\r\n+this is the message\r\n$9\r\nGet-Reply\r\n",
            .push([.simple("message"), .simple("somechannel"), .simple("this is the message")]), .blob("Get-Reply")),
        // The text of the specification says "Hello world"; its bytes lack a letter.
        ReplyVector("$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;1\r\nd\r\n;0\r\n", .blob("Hello word")),
        ReplyVector("*?\r\n:1\r\n:2\r\n:3\r\n.\r\n", .array([.number(1), .number(2), .number(3)])),
        ReplyVector(
            "%?\r\n+a\r\n:1\r\n+b\r\n:2\r\n.\r\n",
            .map([.init(.simple("a"), .number(1)), .init(.simple("b"), .number(2))])),
    ]

    /// Examples of Redis' description of RESP2, and what lies at the edges of both.
    static let others: [ReplyVector] = [
        ReplyVector("$-1\r\n", .null), ReplyVector("*-1\r\n", .null), ReplyVector("*0\r\n", .array([])),
        ReplyVector("%0\r\n", .map([])), ReplyVector("~0\r\n", .set([])), ReplyVector(":-1000\r\n", .number(-1000)),
        ReplyVector(":+7\r\n", .number(7)), ReplyVector(":9223372036854775807\r\n", .number(.max)),
        ReplyVector(":-9223372036854775808\r\n", .number(.min)), ReplyVector("(-1\r\n", .bigNumber("-1")),
        ReplyVector("*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n", .array([.blob("hello"), .null, .blob("world")])),
        ReplyVector("+\r\n", .simple("")), ReplyVector("$2\r\n\r\n\r\n", .blob("\r\n")),
        ReplyVector(",-0.5e-3\r\n", .double(-0.0005)), ReplyVector(",1E+20\r\n", .double(1e20)),
        ReplyVector(",-nan\r\n", .double(.nan)), ReplyVector(",NAN\r\n", .double(.nan)),
        ReplyVector(",nan(0x1)\r\n", .double(.nan)), ReplyVector("=4\r\nmkd:\r\n", .verbatimString(format: "mkd", [])),
        ReplyVector("!0\r\n\r\n", .error("")), ReplyVector("$?\r\n;0\r\n", .blob("")),
        ReplyVector("*?\r\n.\r\n", .array([])), ReplyVector("~?\r\n*?\r\n.\r\n.\r\n", .set([.array([])])),
        ReplyVector("|0\r\n:1\r\n", .number(1)), ReplyVector("|1\r\n|1\r\n+a\r\n:1\r\n+b\r\n:2\r\n:3\r\n", .number(3)),
        ReplyVector("|1\r\n+a\r\n:1\r\n*0\r\n", .array([])),
        ReplyVector(
            "*1\r\n%1\r\n*1\r\n_\r\n~1\r\n#t\r\n",
            .array([.map([.init(.array([.null]), .set([.boolean(true)]))])])),
        ReplyVector("+a\r\n+b\r\n_\r\n", .simple("a"), .simple("b"), .null),
    ]
}

struct ViolationVector: CustomTestStringConvertible, Sendable {
    let wire: String
    let violation: RedisViolation
    let before: [RedisValue]

    init(_ wire: String, _ rule: RedisViolation.Rule, at offset: Int, before: [RedisValue] = []) {
        self.wire = wire
        self.violation = RedisViolation(rule, at: offset)
        self.before = before
    }

    var testDescription: String { self.wire.debugDescription }

    static let all: [ViolationVector] = [
        .init("HTTP/1.1 400 Bad Request\r\n", .unknownType(UInt8(ascii: "H")), at: 1),
        .init("\r\n", .unknownType(0x0D), at: 1), .init("\n", .unknownType(0x0A), at: 1),
        .init("+OK\n", .bareLineEnd, at: 4), .init("+OK\rx", .bareLineEnd, at: 5),
        .init("+OK\r\r", .bareLineEnd, at: 5), .init("$a\r\n", .malformedLength, at: 4),
        .init("$\r\n", .malformedLength, at: 3), .init("$-2\r\n", .malformedLength, at: 5),
        .init("$+3\r\n", .malformedLength, at: 5), .init("%-1\r\n", .malformedLength, at: 5),
        .init("=-1\r\n", .malformedLength, at: 5), .init("!-1\r\n", .malformedLength, at: 5),
        .init("$99999999999999999999\r\n", .malformedLength, at: 23),
        .init("$9223372036854775807\r\n", .valueTooLarge(limit: 32 << 20), at: 22),
        .init("*9223372036854775807\r\n", .tooManyElements(limit: 1 << 20), at: 22),
        .init("%9223372036854775807\r\n", .tooManyElements(limit: 1 << 20), at: 22),
        .init(":\r\n", .malformedNumber, at: 3), .init(":-\r\n", .malformedNumber, at: 4),
        .init(":1 \r\n", .malformedNumber, at: 5), .init(":9223372036854775808\r\n", .malformedNumber, at: 22),
        .init("(1.5\r\n", .malformedNumber, at: 6), .init("(\r\n", .malformedNumber, at: 3),
        .init(",.5\r\n", .malformedDouble, at: 5), .init(",5.\r\n", .malformedDouble, at: 5),
        .init(",\r\n", .malformedDouble, at: 3), .init(",0x10\r\n", .malformedDouble, at: 7),
        .init(",1e\r\n", .malformedDouble, at: 5), .init(",infinite\r\n", .malformedDouble, at: 11),
        .init("#x\r\n", .malformedBoolean, at: 4), .init("#\r\n", .malformedBoolean, at: 3),
        .init("_0\r\n", .malformedNull, at: 4), .init("=3\r\ntxt\r\n", .malformedVerbatimString, at: 9),
        .init("=5\r\ntext:\r\n", .malformedVerbatimString, at: 11),
        .init("$1\r\nab\r\n", .stringWithoutEnd, at: 6), .init("$1\r\na\rb", .stringWithoutEnd, at: 7),
        .init("*1\r\n>1\r\n+a\r\n", .misplacedPush, at: 8), .init(">0\r\n", .misplacedPush, at: 4),
        .init(".\r\n", .misplacedEnd, at: 3), .init("*1\r\n.\r\n", .misplacedEnd, at: 7),
        .init("%?\r\n+a\r\n.\r\n", .misplacedEnd, at: 11), .init("*?\r\n.x\r\n", .misplacedEnd, at: 8),
        .init("*?\r\n|1\r\n+a\r\n:1\r\n.\r\n", .misplacedEnd, at: 19),
        .init(";1\r\na\r\n", .misplacedChunk, at: 4), .init("$?\r\n+a\r\n", .misplacedChunk, at: 8),
        .init("$?\r\n;?\r\n", .malformedLength, at: 8), .init(">?\r\n", .unsupportedStreaming, at: 4),
        .init("|?\r\n", .unsupportedStreaming, at: 4), .init("=?\r\n", .unsupportedStreaming, at: 4),
        .init("!?\r\n", .unsupportedStreaming, at: 4),
        .init("+OK\r\n:1\r\nx", .unknownType(UInt8(ascii: "x")), at: 1, before: [.simple("OK"), .number(1)]),
    ]
}

@Suite("Reading of RESP2 and RESP3")
struct ReplyReaderTests {
    /// Whole, byte by byte, cut in two, and with what follows.
    private func expect(_ wire: [UInt8], _ values: [RedisValue]) throws {
        try expectDecodes(wire, to: values, followedBy: Array("*2\r\n+next\r\n".utf8)) {
            var reader = RedisReplyReader()
            return { chunk in
                var readings = Readings()
                readings.add(chunk, &reader)
                if let violation = readings.violation { throw violation }
                return readings.values
            }
        }
    }

    @Test(arguments: ReplyVector.specification)
    func readsTheExamplesOfTheSpecification(_ vector: ReplyVector) throws {
        try self.expect(Array(vector.wire.utf8), vector.values)
    }

    @Test(arguments: ReplyVector.others)
    func readsValuesAtTheEdges(_ vector: ReplyVector) throws {
        try self.expect(Array(vector.wire.utf8), vector.values)
    }

    @Test(arguments: ViolationVector.all)
    func refusesAtTheByteThatBreaksTheRule(_ vector: ViolationVector) {
        let bytes = Array(vector.wire.utf8)
        let expected = Readings(values: vector.before, violation: vector.violation)
        #expect(Readings.of([bytes]) == expected)
        #expect(Readings.of(bytes.map { [$0] }) == expected)
        #expect(Readings.of([bytes + Array("+more\r\n".utf8)]) == expected)
    }

    @Test func violationIsRepeatedForAllFurtherBytes() throws {
        var reader = RedisReplyReader()
        var readings = Readings()
        readings.add(Array("?".utf8), &reader)
        #expect(readings.violation == RedisViolation(.unknownType(63), at: 1))
        var again = Readings()
        again.add(Array("+OK\r\n".utf8), &reader)
        #expect(again == readings)
    }

    // MARK: Limits

    private static let small = RedisReplyLimits(byteCount: 1000, depth: 3, elementCount: 10, lineLength: 20)

    struct LimitVector: Sendable {
        let wire: String
        let rule: RedisViolation.Rule?
    }

    @Test(arguments: [
        LimitVector(wire: "+\(String(repeating: "a", count: 20))\r\n", rule: nil),
        LimitVector(wire: "+\(String(repeating: "a", count: 21))", rule: .lineTooLong(limit: 20)),
        LimitVector(wire: "$936\r\n\(String(repeating: "a", count: 936))\r\n", rule: nil),
        LimitVector(wire: "$937\r\n", rule: .valueTooLarge(limit: 1000)),
        LimitVector(wire: "*1\r\n*1\r\n*1\r\n:1\r\n", rule: nil),
        LimitVector(wire: "*1\r\n*1\r\n*1\r\n*1\r\n", rule: .tooDeep(limit: 3)),
        LimitVector(wire: "*1\r\n*1\r\n*1\r\n*0\r\n", rule: nil),
        LimitVector(wire: "*10\r\n" + String(repeating: ":1\r\n", count: 10), rule: nil),
        LimitVector(wire: "*11\r\n", rule: .tooManyElements(limit: 10)),
        LimitVector(wire: "%6\r\n", rule: .tooManyElements(limit: 10)),
        LimitVector(wire: "*?\r\n" + String(repeating: ":1\r\n", count: 11), rule: .tooManyElements(limit: 10)),
        LimitVector(
            wire: "*5\r\n" + String(repeating: "*2\r\n:1\r\n:1\r\n", count: 5), rule: .valueTooLarge(limit: 1000)),
        LimitVector(
            wire: "$?\r\n" + String(repeating: ";10\r\n0123456789\r\n", count: 94), rule: .valueTooLarge(limit: 1000)),
        LimitVector(wire: String(repeating: "|0\r\n", count: 16), rule: .valueTooLarge(limit: 1000)),
    ])
    func limitsHoldAtTheirEdges(_ vector: LimitVector) {
        let bytes = Array(vector.wire.utf8)
        let readings = Readings.of([bytes], limits: Self.small)
        #expect(readings.violation?.rule == vector.rule)
        #expect(readings.values.count == (vector.rule == nil ? 1 : 0))
        #expect(Readings.of(bytes.map { [$0] }, limits: Self.small) == readings)
    }

    @Test func limitsAreClampedToWhatIsSafe() {
        let limits = RedisReplyLimits(byteCount: .max, depth: .max, elementCount: .min, lineLength: 0)
        #expect(limits == RedisReplyLimits(byteCount: 1 << 40, depth: 128, elementCount: 1, lineLength: 1))
        let deep = Array((String(repeating: "*1\r\n", count: 128) + "_\r\n").utf8)
        #expect(Readings.of([deep], limits: RedisReplyLimits(depth: .max)).values.count == 1)
        let deeper = Array((String(repeating: "*1\r\n", count: 129) + "_\r\n").utf8)
        #expect(Readings.of([deeper], limits: RedisReplyLimits(depth: .max)).violation?.rule == .tooDeep(limit: 128))
    }

    @Test(arguments: ["$16000000\r\n", "*200000\r\n", "%100000\r\n", "*1\r\n$16000000\r\nabc"])
    func announcedLengthAllocatesNothing(_ wire: String) {
        var reader = RedisReplyReader()
        var readings = Readings()
        readings.add(Array(wire.utf8), &reader)
        #expect(readings == Readings())
        #expect(reader.heldByteCount < 1000)
    }

    @Test func incompleteValueHoldsLittleMoreThanItsBytes() {
        var reader = RedisReplyReader()
        var readings = Readings()
        readings.add(Array("*2\r\n$1000000\r\n".utf8), &reader)
        for _ in 0..<500 { readings.add([UInt8](repeating: 7, count: 1000), &reader) }
        #expect((500_000...1_100_000).contains(reader.heldByteCount))
        #expect(reader.isInsideValue)
        for _ in 0..<500 { readings.add([UInt8](repeating: 7, count: 1000), &reader) }
        readings.add(Array("\r\n_\r\n".utf8), &reader)
        #expect(readings.values == [.array([.blobString([UInt8](repeating: 7, count: 1_000_000)), .null])])
        #expect(!reader.isInsideValue)
        #expect(reader.heldByteCount < 1000)
    }

    // MARK: Any bytes

    /// Bytes that often are RESP: tokens of the protocol, mixed with any others.
    private static func input(_ generator: inout SeededGenerator) -> [UInt8] {
        let tokens = [
            "*2\r\n", "*?\r\n", "%1\r\n", "%?\r\n", "~1\r\n", ">2\r\n", "|1\r\n", ".\r\n", "$?\r\n", ";2\r\nab\r\n",
            ";0\r\n", "$3\r\nabc\r\n", "$-1\r\n", "+OK\r\n", "-ERR no\r\n", ":42\r\n", ",1.5\r\n", ",nan\r\n", "#t\r\n",
            "_\r\n", "(123\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n", "$900\r\n", "\r", "\n", "*", "$", "99999",
        ]
        return (0..<Int.random(in: 1...40, using: &generator)).flatMap { _ in
            Int.random(in: 0..<30, using: &generator) == 0
                ? generator.bytes(3) : Array((tokens.randomElement(using: &generator) ?? "").utf8)
        }
    }

    @Test func anyBytesInAnySplitGiveTheSameWithinTheLimits() {
        var generator = SeededGenerator(seed: 0x5EED)
        let limits = RedisReplyLimits(byteCount: 2000, depth: 4, elementCount: 20, lineLength: 30)
        var valueCount = 0
        var rules = 0
        for round in 0..<3000 {
            let bytes = Self.input(&generator)
            let whole = Readings.of([bytes], limits: limits)
            valueCount += whole.values.count
            rules += whole.violation == nil ? 0 : 1
            #expect(whole.values.allSatisfy { $0.countedSize <= limits.byteCount }, "round \(round)")
            var reader = RedisReplyReader(limits: limits)
            var split = Readings()
            for cut in generator.cuts(of: bytes.count, longest: 4) {
                split.add(Array(bytes[cut]), &reader)
                #expect(reader.heldByteCount <= 2 * limits.byteCount + 1000, "round \(round)")
            }
            #expect(split == whole, "round \(round): \(bytes)")
        }
        // The inputs reach values and violations.
        #expect(valueCount > 2000)
        #expect(rules > 500)
    }
}
