import BackgroundTransfers
import ByteKernels
import TestSupport
import Testing

@Suite("Messages between programs and the transfer daemon")
struct MessageFramingTests {
    private static let messages: [ClientMessage] = [
        .observe(version: 1), .request(number: 9, .acknowledge(sequence: 7)),
        .request(number: 1, .create(.sample(1))), .request(number: 2, .resume(task: 1)),
        .steer(number: 3, session: "a", task: 1, .cancel),
        .request(number: 4, .answerChallenge(task: 1, Self.challenge, .credential(user: "ada", password: "ü\u{0}"))),
    ]
    private static let challenge = TransferChallenge(
        host: "a.example", port: 80, scheme: "http", realm: "r", method: "Basic", isProxy: false, failures: 0)

    private static func read(_ bytes: [UInt8], cuts: [Range<Int>]) throws(FramingFailure) -> [ClientMessage] {
        var reader = MessageReader<ClientMessage>()
        var messages: [ClientMessage] = []
        for cut in cuts {
            Array(bytes[cut]).withRawSpan { reader.bytesReceived($0) }
            while let message = try reader.nextMessage() { messages.append(message) }
        }
        return messages
    }

    @Test func messagesAreTheSameForEverySplit() throws {
        let bytes = try Self.messages.flatMap { try MessageFraming.encode($0) }
        #expect(try Self.read(bytes, cuts: [0..<bytes.count]) == Self.messages)
        #expect(try Self.read(bytes, cuts: bytes.indices.map { $0..<($0 + 1) }) == Self.messages)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<20 {
            #expect(try Self.read(bytes, cuts: generator.cuts(of: bytes.count, longest: 700)) == Self.messages)
        }
    }

    @Test func prefixIsFourBytesMostSignificantFirst() throws {
        var reader = MessageReader<ClientMessage>()
        let body = Array(#"{"observe":{"version":5}}"#.utf8)
        ([0, 0, 0, UInt8(body.count)] + body).withRawSpan { reader.bytesReceived($0) }
        #expect(try reader.nextMessage() == .observe(version: 5))
        #expect(reader.bufferedCount == 0)
    }

    @Test func messageAboveTheLimitIsRefusedAtItsPrefix() {
        var reader = MessageReader<ClientMessage>()
        [0x7F, 0xFF, 0xFF, 0xFF].withRawSpan { reader.bytesReceived($0) }
        #expect(throws: FramingFailure.tooLong(0x7FFF_FFFF)) { try reader.nextMessage() }
        // What follows is not looked at.
        [0, 0, 0, 2, 0x7B, 0x7D].withRawSpan { reader.bytesReceived($0) }
        #expect(throws: FramingFailure.tooLong(0x7FFF_FFFF)) { try reader.nextMessage() }
        #expect(reader.bufferedCount == 0)
    }

    @Test(arguments: [
        "", "null", "{}", #"{"observe":{}}"#, #"{"observe":{"version":1e999}}"#, #"{"other":{}}"#, "\u{0}",
        #"{"observe":{"version":99999999999999999999}}"#,
        #"{"request":{"number":1,"_1":{"resume":{"task":"1"}}}}"#,
        String(repeating: "[", count: 100_000),
    ])
    func invalidBodyIsMalformed(_ body: String) {
        let bytes = Array(body.utf8)
        var reader = MessageReader<ClientMessage>()
        let prefix = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bytes.count >> $0) }
        (prefix + bytes).withRawSpan { reader.bytesReceived($0) }
        #expect(throws: FramingFailure.malformed) { try reader.nextMessage() }
    }

    @Test func randomBytesNeverTrap() {
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<200 {
            var reader = MessageReader<ClientMessage>()
            ([0, 0, 0, 40] + generator.bytes(100)).withRawSpan { reader.bytesReceived($0) }
            #expect(throws: FramingFailure.malformed) { while try reader.nextMessage() != nil {} }
        }
    }

    @Test func tooLargeAMessageIsNotEncoded() {
        var transfer = TransferRecord.sample(1)
        transfer.attributes.label = String(repeating: "a", count: MessageFraming.limit)
        #expect(throws: FramingFailure.self) {
            try MessageFraming.encode(ClientMessage.request(number: 1, .create(transfer)))
        }
    }
}

extension TransferRecord {
    static func sample(_ identifier: Int, _ kind: Kind = .download) -> TransferRecord {
        TransferRecord(
            identifier: identifier, kind: kind, request: TransferRequest(url: "http://a.example/\(identifier)"),
            body: kind == .upload ? "\(identifier).body" : nil)
    }
}
