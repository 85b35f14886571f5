import RedisEngine
import Testing

@Suite("Values of Redis")
struct RedisValueTests {
    private static let samples: [RedisValue] = [
        .simple("a"), .blob("7"), .verbatimString(format: "txt", []), .error("ERR no"), .number(1), .bigNumber("1"),
        .double(1.5), .boolean(true), .null, .array([.null]), .map([]), .set([]), .push([.null]),
    ]

    @Test func eachValueEqualsItselfAlone() {
        for (index, left) in Self.samples.enumerated() {
            for (other, right) in Self.samples.enumerated() { #expect((left == right) == (index == other)) }
        }
        #expect(RedisValue.double(.nan) == .double(.nan))
        #expect(RedisValue.map([.init(.null, .null)]) != .map([]))
    }

    @Test func accessorsAcceptTheTypesOfBothProtocols() throws {
        #expect(try RedisValue.blob("é").text() == "é")
        #expect(try RedisValue.verbatimString(format: "txt", [65]).bytes() == [65])
        #expect(try RedisValue.blob("-12").int() == -12)
        #expect(try RedisValue.number(3).double() == 3)
        #expect(try RedisValue.blob("inf").double() == .infinity)
        #expect(try RedisValue.boolean(false).bool() == false)
        #expect(try RedisValue.number(1).bool())
        #expect(try RedisValue.set([.null]).array() == [.null])
        #expect(try RedisValue.array([.blob("a"), .number(1)]).map()["a"] == .number(1))
        #expect(try RedisValue.array([]).map().isEmpty)
        #expect(throws: Never.self) { try RedisValue.simple("OK").ok() }
        #expect(RedisValue.null.nonNull == nil && RedisValue.number(1).nonNull == .number(1))
    }

    private func mismatch(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func mismatchesNameWhatWasExpectedAndFound() {
        let found = "Redis answered with"
        #expect(
            self.mismatch { _ = try RedisValue.number(1).text() } == "\(found) a number where a string was expected")
        #expect(
            self.mismatch { _ = try RedisValue.blobString([0xFF]).text() }
                == "\(found) a blob string of 1 bytes where a string of UTF-8 was expected")
        #expect(
            self.mismatch { _ = try RedisValue.error("NOSCRIPT none").int() }
                == "\(found) the error NOSCRIPT where a number was expected")
        #expect(
            self.mismatch { _ = try RedisValue.array([.null]).map() }
                == "\(found) an array of 1 where a map was expected")
        #expect(self.mismatch { try RedisValue.blob("secret").ok() }?.contains("secret") == false)
    }

    @Test func onlyFittingTypesAreAccepted() {
        func count(_ body: (RedisValue) throws -> Void) -> Int {
            Self.samples.filter { self.mismatch { [sample = $0] in try body(sample) } == nil }.count
        }
        #expect(count { _ = try $0.bytes() } == 3)
        #expect(count { _ = try $0.int() } == 2)
        #expect(count { _ = try $0.double() } == 3)
        #expect(count { _ = try $0.bool() } == 2)
        #expect(count { _ = try $0.array() } == 3)
        #expect(count { _ = try $0.map() } == 1)
        #expect(count { try $0.ok() } == 0)
    }

    @Test func mismatchCarriesTheServersError() throws {
        do {
            try RedisValue.error("OOM full").ok()
            Issue.record("accepted")
        } catch {
            #expect(error.serverError?.code == .outOfMemory)
        }
    }
}

@Suite("Commands on the wire")
struct RedisCommandTests {
    @Test func commandIsAnArrayOfBlobStrings() {
        let command = RedisCommand("SET", .bytes([0xFF, 0x0D, 0x0A]), .text("é"), .number(-5), "EX", 10)
        var bytes: [UInt8] = [1]
        bytes.append(redis: command)
        var expected: [UInt8] = [1] + Array("*6\r\n$3\r\nSET\r\n$3\r\n".utf8)
        expected += [0xFF, 0x0D, 0x0A, 0x0D, 0x0A]
        expected += Array("$2\r\né\r\n$2\r\n-5\r\n$2\r\nEX\r\n$2\r\n10\r\n".utf8)
        #expect(bytes == expected)
        #expect(command.encodedSize == bytes.count - 1)
    }

    @Test(arguments: [0, 1, 9, 10, 99, 100, 1000])
    func sizeIsThatOnTheWire(_ length: Int) {
        let command = RedisCommand("X", (0..<length).map { _ in .bytes([UInt8](repeating: 0, count: length)) })
        var bytes: [UInt8] = []
        bytes.append(redis: command)
        #expect(command.encodedSize == bytes.count)
    }

    @Test func descriptionOmitsTheArguments() {
        let command = RedisCommand("AUTH", "opensesame")
        #expect("\(command)" == "AUTH with 1 arguments")
        #expect(String(reflecting: [command]) == "[AUTH with 1 arguments]")
    }
}
