import Deflate
import TestSupport
import Testing

@Suite("Inflating, RFC 1950, 1951 and 1952")
struct InflaterTests {
    @Test(arguments: DeflateVector.whole)
    func streamOfAnotherEncoderIsInflated(_ vector: DeflateVector) throws {
        let expected = InflateOutcome(bytes: Array(vector.text.utf8), reachedEnd: true)
        for room in [1, 7, 4096] {
            let inflater = try #require(Inflater(format: vector.format))
            #expect(inflater.feed([vector.stream], room: room) == expected)
            inflater.reset()
            #expect(inflater.feed(vector.stream.singleBytes, room: room) == expected)
            inflater.reset()
            #expect(inflater.feed([vector.stream + [0xAA, 0xBB]], room: room) == expected)
        }
    }

    @Test(arguments: DeflateVector.whole)
    func bytesAfterTheStreamAreNotConsumed(_ vector: DeflateVector) throws {
        let inflater = try #require(Inflater(format: vector.format))
        let input = vector.stream + [1, 2, 3]
        var consumed = 0
        var written = 0
        var output = [UInt8](repeating: 0, count: 1000)
        var elements = output.mutableSpan
        var room = elements.mutableBytes
        let progress = try inflater.inflate(input.span.bytes, consumed: &consumed, into: &room, written: &written)
        #expect(progress == .streamEnd)
        #expect(consumed == vector.stream.count)
        #expect(written == vector.text.utf8.count)
    }

    @Test(arguments: DeflateVector.whole)
    func inflaterNeedsMoreInputWhileTheStreamIsIncomplete(_ vector: DeflateVector) throws {
        for length in 0..<vector.stream.count {
            let inflater = try #require(Inflater(format: vector.format))
            let outcome = inflater.feed([Array(vector.stream[..<length])], room: 1000)
            #expect(outcome.failure == nil)
            #expect(!outcome.reachedEnd)
        }
    }

    /// RFC 7692 §7.2.3: every message is followed by the four bytes that its sender took off.
    static let messages: [(name: String, payloads: [[UInt8]])] = [
        ("§7.2.3.1", [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]]),
        ("§7.2.3.2", [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00]]),
        ("§7.2.3.3", [[0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00]]),
        ("§7.2.3.4", [[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00]]),
        ("§7.2.3.5", [[0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00]]),
        (
            "§7.2.3.4, then §7.2.3.2",
            [[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00]]
        ),
    ]

    @Test(arguments: messages)
    func permessageDeflateMessagesOfTheRFCAreInflated(name: String, payloads: [[UInt8]]) throws {
        let inflater = try #require(Inflater(format: .raw))
        for payload in payloads {
            let text = try inflater.inflateAll(payload + [0x00, 0x00, 0xFF, 0xFF])
            #expect(text == Array("Hello".utf8), "\(name)")
        }
    }

    @Test func outputOfABombIsBounded() throws {
        let deflater = try #require(Deflater(DeflaterSettings(format: .raw)))
        var bomb: [UInt8] = []
        let mebibyte = [UInt8](repeating: 0, count: 1 << 20)
        for _ in 0..<8 { deflater.deflate(mebibyte.span.bytes, flush: .none, appendingTo: &bomb) }
        deflater.deflate([UInt8]().span.bytes, flush: .finish, appendingTo: &bomb)
        #expect(bomb.count < 10_000)
        let inflater = try #require(Inflater(format: .raw))
        #expect(inflater.feed([bomb], room: 4096, limit: 1 << 20).bytes.count == 1 << 20 + 4096)
        inflater.reset()
        #expect(try inflater.inflateAll(bomb).count == 8 << 20)
    }

    @Test func corruptBytesHaveADescribedError() throws {
        let reserved: [UInt8] = [0x07]  // block type 3 does not exist
        let raw = try #require(Inflater(format: .raw))
        #expect(raw.feed([reserved], room: 10).failure == .corrupt(reason: "invalid block type"))
        let zlib = try #require(Inflater(format: .zlib))
        #expect(zlib.feed([[0x78, 0x9D]], room: 10).failure == .corrupt(reason: "incorrect header check"))
        let gzip = try #require(Inflater(format: .gzip))
        #expect(gzip.feed([[0x1F, 0x8C]], room: 10).failure == .corrupt(reason: "incorrect header check"))
    }

    @Test func streamThatNeedsADictionaryIsRefused() throws {
        let stream: [UInt8] = [
            0x78, 0xF9, 0x16, 0xC0, 0x04, 0x37, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x06, 0x2C, 0x02, 0x15,
        ]
        let inflater = try #require(Inflater(format: .zlib))
        #expect(inflater.feed([stream], room: 10).failure == .dictionaryRequired)
    }

    @Test(arguments: UInt64(0)..<300)
    func damagedBytesHaveTheSameOutcomeInEverySplit(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let vector = DeflateVector.whole[Int(seed) % DeflateVector.whole.count]
        var stream = vector.stream
        for _ in 0...Int.random(in: 0...3, using: &generator) {
            stream[Int.random(in: 0..<stream.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        let inflater = try #require(Inflater(format: vector.format))
        let whole = inflater.feed([stream], room: 4096, limit: 100_000)
        for longest in [1, 5, 20] {
            inflater.reset()
            let pieces = stream.cut(generator.cuts(of: stream.count, longest: longest))
            let outcome = inflater.feed(pieces, room: Int.random(in: 1...40, using: &generator), limit: 100_000)
            #expect(outcome == whole, "seed \(seed), pieces up to \(longest)")
        }
    }

    @Test(arguments: UInt64(0)..<200)
    func inflaterSurvivesAnyBytes(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let noise = generator.bytes(Int.random(in: 0...600, using: &generator))
        for format in [DeflateFormat.raw, .zlib, .gzip] {
            let inflater = try #require(Inflater(format: format, windowBits: 9))
            #expect(inflater.feed([noise], room: 100, limit: 1000).bytes.count <= 1100, "seed \(seed)")
        }
    }
}
