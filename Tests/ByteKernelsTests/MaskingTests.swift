import ByteKernels
import TestSupport
import Testing

@Suite("Masking, RFC 6455 §5.3")
struct MaskingTests {
    /// The rule of the RFC word by word: octet i is XORed with octet i mod 4 of the key.
    private static func masked(_ bytes: [UInt8], keyBytes: [UInt8], phase: Int) -> [UInt8] {
        bytes.enumerated().map { $0.element ^ keyBytes[($0.offset + phase) % 4] }
    }

    private static func word(_ keyBytes: [UInt8]) -> UInt32 {
        keyBytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    @Test func exampleOfTheRFCIsUnmasked() {
        var payload: [UInt8] = [0x7F, 0x9F, 0x4D, 0x51, 0x58]
        let phase = payload.withMutableRawSpan { applyMask(&$0, key: Self.word([0x37, 0xFA, 0x21, 0x3D]), phase: 0) }
        #expect(payload == Array("Hello".utf8))
        #expect(phase == 1)
    }

    @Test(arguments: 0..<200)
    func maskingEveryShortLengthInEveryPhaseChangesNoOtherByte(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        let keyBytes = generator.bytes(4)
        for phase in 0...3 {
            let plain = generator.bytes(count + 16)
            var inPlace = plain
            let next = inPlace.withMutableRawSpan { whole in
                var middle = whole._mutatingExtracting(8..<8 + count)
                return applyMask(&middle, key: Self.word(keyBytes), phase: phase)
            }
            let expected = Self.masked(Array(plain[8..<8 + count]), keyBytes: keyBytes, phase: phase)
            #expect(inPlace == plain[..<8] + expected + plain[(8 + count)...])
            #expect(next == (phase + count) % 4)
        }
    }

    @Test(arguments: 0..<200)
    func maskedCopyWritesOnlyToItsDestination(count: Int) {
        var generator = SeededGenerator(seed: UInt64(1000 + count))
        let keyBytes = generator.bytes(4)
        for phase in 0...3 {
            let source = generator.bytes(count)
            let before = generator.bytes(count + 16)
            var target = before
            let next = target.withMutableRawSpan { whole in
                source.withRawSpan { copyMasked($0, into: &whole, at: 5, key: Self.word(keyBytes), phase: phase) }
            }
            let expected = Self.masked(source, keyBytes: keyBytes, phase: phase)
            #expect(target == before[..<5] + expected + before[(5 + count)...])
            #expect(next == (phase + count) % 4)
        }
    }

    @Test(arguments: UInt64(0)..<40)
    func maskPhaseCarriesOverAnySplit(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let plain = generator.bytes(Int.random(in: 0...5000, using: &generator))
        let keyBytes = generator.bytes(4)
        var pieces = plain
        var phase = 0
        for range in generator.cuts(of: plain.count, longest: 300) {
            phase = pieces.withMutableRawSpan { whole in
                var piece = whole._mutatingExtracting(range)
                return applyMask(&piece, key: Self.word(keyBytes), phase: phase)
            }
        }
        #expect(pieces == Self.masked(plain, keyBytes: keyBytes, phase: 0), "seed \(seed)")
    }

    @Test func maskingTwiceGivesTheBytesBack() {
        var generator = SeededGenerator(seed: 7)
        let plain = generator.bytes(16384)
        var bytes = plain
        _ = bytes.withMutableRawSpan { applyMask(&$0, key: 0xDEAD_BEEF, phase: 2) }
        #expect(bytes != plain)
        _ = bytes.withMutableRawSpan { applyMask(&$0, key: 0xDEAD_BEEF, phase: 2) }
        #expect(bytes == plain)
    }
}
