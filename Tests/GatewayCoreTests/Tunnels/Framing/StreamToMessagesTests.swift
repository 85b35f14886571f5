import ByteKernels
import GatewayConfiguration
import GatewayCore
import TestSupport
import Testing
import WebSocketProtocol

@Suite("From a byte stream to messages")
struct StreamToMessagesTests {
    /// A stream and its messages, in a framing that keeps boundaries.
    struct Vector: Sendable, CustomTestStringConvertible {
        let framing: Framing
        let stream: [UInt8]
        let messages: [[UInt8]]
        var violation: FramingViolation?
        var limit = Int.max
        var testDescription: String { "\(self.framing) \(self.stream.prefix(40))" }

        init(
            _ framing: Framing, _ stream: String, _ messages: [String], _ violation: FramingViolation? = nil,
            limit: Int = .max
        ) {
            self.init(framing, Array(stream.utf8), messages.map { Array($0.utf8) }, violation, limit: limit)
        }

        init(
            _ framing: Framing, _ stream: [UInt8], _ messages: [[UInt8]], _ violation: FramingViolation? = nil,
            limit: Int = .max
        ) {
            self.framing = framing
            self.stream = stream
            self.messages = messages
            self.violation = violation
            self.limit = limit
        }
    }

    static let withBoundaries: [Vector] = [
        Vector(.lines, "", []),
        Vector(.lines, "one\n", ["one"]),
        Vector(.lines, "one\r\ntwo\nthree", ["one", "two", "three"]),
        Vector(.lines, "\n\r\n\n", ["", "", ""]),
        Vector(.lines, "a\rb\r\r\nc\r", ["a\rb\r", "c\r"]),
        Vector(.lines, "\r", ["\r"]),
        Vector(.lines, "grüße 🙂\nnoch", ["grüße 🙂", "noch"]),
        Vector(.lines, [0x61, 0x0A, 0xC3, 0x28, 0x0A], [[0x61]], .invalidText),
        Vector(.lines, [0x61, 0xC3, 0x0A], [], .invalidText),
        Vector(.lines, [0x61, 0xE2, 0x82], [], .invalidText),
        Vector(.lines, "1234\n1234\r\n", ["1234", "1234"], limit: 4),
        Vector(.lines, "1234\n12345\n", ["1234"], .messageTooLong, limit: 4),
        Vector(.lines, "1234\r", [], .messageTooLong, limit: 4),
        Vector(.lengthPrefixed, [], []),
        Vector(.lengthPrefixed, [0, 0, 0, 0], [[]]),
        Vector(.lengthPrefixed, [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9], [[7, 8], [], [9]]),
        Vector(.lengthPrefixed, [0, 0, 0, 2, 7], [], .unfinishedMessage),
        Vector(.lengthPrefixed, [0, 0, 0, 1, 7, 0, 0], [[7]], .unfinishedMessage),
        Vector(.lengthPrefixed, [0, 0, 0, 4, 1, 2, 3, 4], [[1, 2, 3, 4]], limit: 4),
        Vector(.lengthPrefixed, [0, 0, 0, 5, 1, 2, 3, 4, 5], [], .messageTooLong, limit: 4),
        Vector(.lengthPrefixed, [0xFF, 0xFF, 0xFF, 0xFF, 1], [], .messageTooLong, limit: 1 << 20),
    ]

    @Test(arguments: withBoundaries)
    func messagesAreTheSameHoweverTheStreamIsCut(_ vector: Vector) {
        let cuts = [vector.stream.count, 1, 2, 3, 5].map { max($0, 1) }
        for cut in cuts {
            var reader = StreamReader(vector.framing, messageLimit: vector.limit)
            reader.feed(vector.stream, inPiecesOf: cut)
            reader.finish()
            #expect(reader.messages == vector.messages, "in pieces of \(cut)")
            #expect(reader.violation == vector.violation, "in pieces of \(cut)")
            #expect(vector.violation != nil || reader.isBetweenMessages)
        }
    }

    /// RFC 4648 §10.
    static let base64: [(String, String)] = [
        ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test(arguments: base64)
    func base64ExamplesOfTheRFCAreEncoded(_ bytes: String, _ text: String) {
        var reader = StreamReader(.base64)
        reader.feed(Array(bytes.utf8))
        #expect(reader.messages == [Array(text.utf8)])
        #expect(reader.kinds == [.text])
    }

    @Test func theWholeBase64AlphabetIsTheOneOfTheRFC() {
        let bytes: [UInt8] = [0x00, 0x10, 0x83, 0x10, 0x51, 0x87, 0x20, 0x92, 0x8B, 0xFB, 0xEF, 0xBE, 0xFF, 0xFF, 0xFF]
        var reader = StreamReader(.base64)
        reader.feed(bytes)
        #expect(reader.messages == [Array("ABCDEFGHIJKL++++////".utf8)])
    }

    @Test func binaryPassesEachReadAsARangeOfItself() {
        var machine = StreamToMessages(.binary, messageLimit: .max)
        var offset = 0
        let steps = [UInt8](repeating: 7, count: 100).withRawSpan { bytes in
            [machine.next(bytes, at: &offset), machine.next(bytes, at: &offset)]
        }
        #expect(steps == [.chunk(0..<100, .whole(.binary)), .exhausted])
        #expect(offset == 100)
        #expect(machine.finish() == nil)
    }

    @Test(arguments: [Framing.binary, .text, .base64])
    func binaryMessagesAreSplitAtTheLimit(_ framing: Framing) {
        var reader = StreamReader(framing, messageLimit: 8)
        reader.feed(Array("0123456789ü0123456789".utf8))
        reader.finish()
        #expect(reader.violation == nil)
        #expect(reader.messages.allSatisfy { $0.count <= 8 && !$0.isEmpty })
        if framing != .base64 { #expect(reader.messages.flatMap(\.self) == Array("0123456789ü0123456789".utf8)) }
    }

    @Test(arguments: ["grüße", "a€b𝄞c", "\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}", "𝄞"])
    func aCharacterSplitOverReadsStaysWhole(_ text: String) {
        for cut in 1...5 {
            var reader = StreamReader(.text)
            reader.feed(Array(text.utf8), inPiecesOf: cut)
            reader.finish()
            #expect(reader.violation == nil)
            #expect(reader.kinds.allSatisfy { $0 == .text })
            #expect(reader.messages.flatMap(\.self) == Array(text.utf8))
            #expect(reader.messages.allSatisfy { String(validating: $0, as: UTF8.self) != nil }, "in pieces of \(cut)")
            #expect(reader.mostHeldBack <= 3)
        }
    }

    static let notText: [[UInt8]] = [
        [0x80], [0x61, 0xFF], [0xC0, 0x80], [0xE0, 0x9F, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0x80, 0x80],
        [0xF4, 0x90, 0x80, 0x80], [0xF5], [0xE2, 0x82, 0x41], [0xE2, 0x82], [0x61, 0xC3], [0xF0, 0x9D, 0x84],
    ]

    @Test(arguments: notText)
    func invalidUTF8EndsTheTunnelInEverySplit(_ bytes: [UInt8]) {
        for cut in 1...4 {
            var reader = StreamReader(.text)
            reader.feed(Array("ok".utf8) + bytes, inPiecesOf: cut)
            reader.finish()
            #expect(reader.violation == .invalidText)
            #expect(reader.messages.flatMap(\.self).starts(with: Array("ok".utf8)))
            #expect(reader.messages.allSatisfy { String(validating: $0, as: UTF8.self) != nil })
        }
    }

    @Test func aLongAnnouncedMessagePassesInFragmentsWithoutBeingAssembled() {
        var machine = StreamToMessages(.lengthPrefixed, messageLimit: 1 << 24)
        let block = [UInt8](repeating: 1, count: 64 * 1024)
        var sent = 0
        var marks: [ChunkPosition] = []
        var steps = Self.steps(&machine, [0x00, 0xA0, 0x00, 0x00])
        for _ in 0..<160 { steps += Self.steps(&machine, block) }
        for step in steps {
            guard case .chunk(let range, let mark) = step else { continue }
            sent += range.count
            marks.append(mark)
        }
        #expect(sent == 10 << 20)
        #expect(marks.filter(\.startsMessage).count == 1)
        #expect(marks.filter(\.endsMessage).count == 1)
        #expect(marks.first?.startsMessage == true && marks.last?.endsMessage == true)
        #expect(machine.finish() == nil)
    }

    @Test func aViolationIsRepeatedForEver() {
        var machine = StreamToMessages(.lengthPrefixed, messageLimit: 4)
        #expect(Self.steps(&machine, [0, 0, 1, 0]) == [.violation(.messageTooLong)])
        #expect(Self.steps(&machine, [1, 2, 3]) == [.violation(.messageTooLong)])
        #expect(machine.finish() == .violation(.messageTooLong))
    }

    @Test(arguments: [(Framing.lines, 20), (.lengthPrefixed, 300), (.text, 40)], 0..<40 as Range<UInt64>)
    func randomBytesInRandomCutsGiveOneAnswer(_ subject: (Framing, Int), _ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let alphabet: [UInt8] = [0, 0, 0, 1, 2, 3, 0x0A, 0x0D, 0x61, 0xC3, 0xA4, 0xE2, 0x82, 0xAC]
        let stream = (0..<Int.random(in: 0...60, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0
        }
        var whole = StreamReader(subject.0, messageLimit: subject.1)
        whole.feed(stream)
        whole.finish()
        var cut = StreamReader(subject.0, messageLimit: subject.1)
        var rest = stream[...]
        while !rest.isEmpty {
            cut.feed(Array(rest.prefix(Int.random(in: 1...7, using: &random))))
            rest = rest.dropFirst(cut.lastFed)
        }
        cut.finish()
        #expect(cut.violation == whole.violation, "seed \(seed) \(stream)")
        if subject.0 == .text {
            #expect(cut.messages.flatMap(\.self) == whole.messages.flatMap(\.self), "seed \(seed) \(stream)")
        } else {
            #expect(cut.messages == whole.messages, "seed \(seed) \(stream)")
        }
    }

    private static func steps(_ machine: inout StreamToMessages, _ bytes: [UInt8]) -> [FramingStep] {
        bytes.withRawSpan { span in
            var offset = 0
            var steps: [FramingStep] = []
            while true {
                let step = machine.next(span, at: &offset)
                if step == .exhausted { return steps }
                steps.append(step)
                if case .violation = step { return steps }
            }
        }
    }
}
