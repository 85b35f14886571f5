import Deflate
import TestSupport
import Testing

@Suite("Deflating, RFC 1950, 1951 and 1952")
struct DeflaterTests {
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    /// Bytes with much to find again, near and far.
    private static func repetitive(_ count: Int, using generator: inout SeededGenerator) -> [UInt8] {
        let words = (0..<40).map { _ in generator.bytes(Int.random(in: 3...60, using: &generator)) }
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += words.randomElement(using: &generator) ?? [] }
        return Array(bytes[..<count])
    }

    @Test func exampleOfTheRFCIsCompressed() throws {
        let deflater = try #require(Deflater(DeflaterSettings(format: .raw)))
        var output: [UInt8] = []
        deflater.deflate(Array("Hello".utf8).span.bytes, flush: .sync, appendingTo: &output)
        #expect(output == [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00] + Self.tail)  // RFC 7692 §7.2.3.1
        output = []
        deflater.deflate(Array("Hello".utf8).span.bytes, flush: .sync, appendingTo: &output)
        #expect(output == [0xF2, 0x00, 0x11, 0x00, 0x00] + Self.tail)  // §7.2.3.2
        output = []
        deflater.reset()
        deflater.deflate(Array("Hello".utf8).span.bytes, flush: .sync, appendingTo: &output)
        #expect(output == [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00] + Self.tail)
    }

    @Test(arguments: [DeflateFormat.raw, .zlib, .gzip], 0...9)
    func everyLevelInflatesToTheSameBytes(format: DeflateFormat, level: Int) throws {
        var generator = SeededGenerator(seed: UInt64(level))
        let plain = Self.repetitive(200_000, using: &generator)
        let deflater = try #require(Deflater(DeflaterSettings(format: format, level: level)))
        let inflater = try #require(Inflater(format: format))
        var stream: [UInt8] = []
        deflater.deflate(plain.span.bytes, flush: .finish, appendingTo: &stream)
        #expect(inflater.feed([stream], room: 4096) == InflateOutcome(bytes: plain, reachedEnd: true))
        #expect(level == 0 || stream.count < plain.count / 4)
    }

    @Test(arguments: [DeflateFlush.sync, .full])
    func flushMakesAllInputSoFarReadable(flush: DeflateFlush) throws {
        var generator = SeededGenerator(seed: 3)
        let deflater = try #require(Deflater(DeflaterSettings(format: .raw)))
        let inflater = try #require(Inflater(format: .raw))
        for count in [0, 1, 5, 300, 70_000, 2] {
            let plain = Self.repetitive(count, using: &generator)
            var stream: [UInt8] = [0xEE]
            deflater.deflate(plain.span.bytes, flush: flush, appendingTo: &stream)
            #expect(stream.first == 0xEE)
            #expect(count == 0 || stream.suffix(4) == Self.tail[...])
            stream.removeFirst()
            #expect(try inflater.inflateAll(stream) == plain)
        }
    }

    @Test(arguments: 8...15, [1, 5, 6, 9])
    func deflaterNeverReachesBackFurtherThanItsWindow(windowBits: Int, level: Int) throws {
        var generator = SeededGenerator(seed: UInt64(windowBits))
        let plain = Self.repetitive(60_000, using: &generator)
        let settings = DeflaterSettings(format: .raw, windowBits: windowBits, level: level, memoryLevel: 9)
        let deflater = try #require(Deflater(settings))
        var stream: [UInt8] = []
        deflater.deflate(plain.span.bytes, flush: .sync, appendingTo: &stream)
        // With a byte of room at a time the inflater remembers its window and nothing beyond.
        let strict = try #require(Inflater(format: .raw, windowBits: windowBits))
        #expect(strict.feed([stream], room: 1) == InflateOutcome(bytes: plain))
    }

    @Test func tooSmallWindowFailsTheInflater() throws {
        var generator = SeededGenerator(seed: 1)
        let plain = Self.repetitive(60_000, using: &generator)
        let deflater = try #require(Deflater(DeflaterSettings(format: .raw, windowBits: 10)))
        var stream: [UInt8] = []
        deflater.deflate(plain.span.bytes, flush: .sync, appendingTo: &stream)
        let strict = try #require(Inflater(format: .raw, windowBits: 8))
        #expect(strict.feed([stream], room: 1).failure == .corrupt(reason: "invalid distance too far back"))
    }

    @Test(arguments: UInt64(0)..<60)
    func outputInAnyRoomInflatesToTheSameBytes(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let plain = Self.repetitive(Int.random(in: 1...20_000, using: &generator), using: &generator)
        let deflater = try #require(Deflater(DeflaterSettings(format: .raw, windowBits: 9, memoryLevel: 1)))
        var stream: [UInt8] = []
        for range in generator.cuts(of: plain.count, longest: 3000) {
            let flush = [DeflateFlush.none, .sync, .full].randomElement(using: &generator) ?? .none
            stream += deflater.pieces(
                of: Array(plain[range]), flush: flush, room: Int.random(in: 7...200, using: &generator))
        }
        stream += deflater.pieces(of: [], flush: .finish, room: 7)
        let inflater = try #require(Inflater(format: .raw, windowBits: 9))
        #expect(inflater.feed([stream], room: 333) == InflateOutcome(bytes: plain, reachedEnd: true), "seed \(seed)")
    }

    @Test func settingsAreClampedToTheirRanges() {
        let low = DeflaterSettings(format: .raw, windowBits: -3, level: -1, memoryLevel: 0)
        #expect([low.windowBits, low.level, low.memoryLevel] == [8, 0, 1])
        let high = DeflaterSettings(format: .raw, windowBits: 99, level: 99, memoryLevel: 99)
        #expect([high.windowBits, high.level, high.memoryLevel] == [15, 9, 9])
        #expect(DeflaterSettings(format: .raw).memoryCost == 256 << 10)
    }
}

extension Deflater {
    fileprivate func pieces(of input: [UInt8], flush: DeflateFlush, room: Int) -> [UInt8] {
        var all: [UInt8] = []
        var consumed = 0
        var progress = DeflateProgress.outputFull
        while progress == .outputFull {
            var output = [UInt8](repeating: 0, count: room)
            var written = 0
            output.withMutableBytes { span in
                progress = self.deflate(
                    input.span.bytes, consumed: &consumed, flush: flush, into: &span, written: &written)
            }
            all += output[..<written]
        }
        return all
    }
}

extension [UInt8] {
    fileprivate mutating func withMutableBytes(_ body: (inout MutableRawSpan) -> Void) {
        var elements = self.mutableSpan
        var bytes = elements.mutableBytes
        body(&bytes)
    }
}
