import ByteKernels
import GatewayConfiguration
import GatewayCore
import TestSupport
import Testing
import WebSocketProtocol

@Suite("From messages to a byte stream")
struct MessagesToStreamTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let framing: Framing
        let messages: [[UInt8]]
        let stream: [UInt8]
        var violation: FramingViolation?
        var limit = Int.max
        var testDescription: String { "\(self.framing) \(self.messages)" }

        init(
            _ framing: Framing, _ messages: [[UInt8]], _ stream: [UInt8], _ violation: FramingViolation? = nil,
            limit: Int = .max
        ) {
            self.framing = framing
            self.messages = messages
            self.stream = stream
            self.violation = violation
            self.limit = limit
        }

        init(
            _ framing: Framing, _ messages: [String], _ stream: String, _ violation: FramingViolation? = nil,
            limit: Int = .max
        ) {
            self.init(framing, messages.map { Array($0.utf8) }, Array(stream.utf8), violation, limit: limit)
        }
    }

    static let vectors: [Vector] = [
        Vector(.binary, [[1, 2], [], [0xFF]], [1, 2, 0xFF]),
        Vector(.binary, [[1, 2, 3, 4]], [1, 2, 3, 4], limit: 4),
        Vector(.text, ["grüße", "𝄞"], "grüße𝄞"),
        Vector(.lines, ["one", "", "zwö"], "one\n\nzwö\n"),
        Vector(.lengthPrefixed, [[7, 8], [], [9]], [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9]),
        Vector(.lengthPrefixed, [[1, 2, 3, 4]], [0, 0, 0, 4, 1, 2, 3, 4], limit: 4),
        Vector(.lengthPrefixed, [[1, 2, 3, 4, 5]], [], .messageTooLong, limit: 4),
        Vector(.text, ["ab\u{E4}"], "", .messageTooLong, limit: 3),
        Vector(.text, [[0xFF, 0x61, 0x61, 0x61]], [], .invalidText, limit: 3),
        Vector(.base64, ["*AAAA"], "", .invalidBase64, limit: 4),
        Vector(.base64, ["Zg==", "", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"], "ffofoofoobfoobafoobar"),
    ]

    @Test(arguments: vectors)
    func streamIsTheSameHoweverMessagesAreFragmented(_ vector: Vector) {
        for size in [1, 2, 3, 4, 1000] {
            var writer = StreamWriter(vector.framing, messageLimit: vector.limit)
            for message in vector.messages { writer.send(message, inChunksOf: size) }
            #expect(vector.violation != nil || writer.stream == vector.stream, "in chunks of \(size)")
            #expect(writer.violation == vector.violation, "in chunks of \(size)")
        }
    }

    @Test(arguments: [
        "Zg=", "Zg", "Z", "=", "Zg=g", "Zg==Zg==", "Zm9v\n", "Zm9 ", "Zm-v", "Zh==", "Zm9=", "Z===", "====", "Zg===",
        "Zm9vZ",
    ])
    func invalidBase64IsRefused(_ text: String) {
        for size in [1, 2, 1000] {
            var writer = StreamWriter(.base64)
            writer.send(Array(text.utf8), inChunksOf: size)
            #expect(writer.violation == .invalidBase64, "in chunks of \(size)")
            writer.send(Array("Zg==".utf8), inChunksOf: 4)
            #expect(writer.violation == .invalidBase64)
        }
    }

    @Test(arguments: [Framing.text, .lines])
    func invalidUTF8IsRefusedInTextAndBinaryMessages(_ framing: Framing) {
        for bytes in StreamToMessagesTests.notText {
            for kind in [MessageKind.text, .binary] {
                var writer = StreamWriter(framing, kind: kind)
                writer.send(bytes, inChunksOf: 2)
                #expect(writer.violation == .invalidText)
            }
        }
    }

    @Test(arguments: Framing.allCases)
    func limitAppliesToAllChunksOfAMessage(_ framing: Framing) {
        var writer = StreamWriter(framing, messageLimit: 8)
        for _ in 0..<3 { writer.send(Array("Zm9vYmFy".utf8), inChunksOf: 3) }
        #expect(writer.violation == nil)
        writer.send(Array("Zm9vYmFyZ".utf8), inChunksOf: 3)
        #expect(writer.violation == .messageTooLong)
    }

    @Test(arguments: [Framing.binary, .text])
    func unchangedBytesAreNotCopied(_ framing: Framing) {
        var machine = MessagesToStream(framing, messageLimit: .max)
        var stream: [UInt8] = []
        let answer = Array("abc".utf8).withRawSpan { machine.take($0, .whole(.text), into: &stream) }
        #expect(answer == .unchanged)
        #expect(stream.isEmpty)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func lengthPrefixesAreReadBackAsTheSameMessages(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let messages = (0..<Int.random(in: 0...8, using: &random)).map { _ in
            (0..<Int.random(in: 0...400, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        var writer = StreamWriter(.lengthPrefixed, messageLimit: 400)
        for message in messages { writer.send(message, inChunksOf: Int.random(in: 1...200, using: &random)) }
        var reader = StreamReader(.lengthPrefixed, messageLimit: 400)
        reader.feed(writer.stream, inPiecesOf: Int.random(in: 1...100, using: &random))
        reader.finish()
        #expect(reader.messages == messages, "seed \(seed)")
        #expect(reader.violation == nil, "seed \(seed)")
    }
}
