import ByteKernels
import TestSupport
import Testing

@Suite("Incremental UTF-8, RFC 3629 §4")
struct UTF8ValidatorTests {
    /// Feeds `bytes` in `pieces` and gives the offset of the first bad byte in the whole.
    private static func firstFault(in bytes: [UInt8], pieces: [Range<Int>]) -> (fault: Int?, isComplete: Bool) {
        var validator = UTF8Validator()
        for range in pieces {
            let fault = bytes.withRawSpan { validator.validate($0.extracting(range)) }
            if let fault { return (range.lowerBound + fault, true) }
        }
        return (nil, validator.isComplete)
    }

    static let hostile: [(bytes: [UInt8], fault: Int)] = [
        ([0x80], 0), ([0xBF], 0), ([0xC0], 0), ([0xC1, 0x80], 0), ([0xF5], 0), ([0xFF], 0), ([0xFE], 0),
        ([0xC2, 0x41], 1), ([0xC2, 0xC2], 1), ([0xE0, 0x80], 1), ([0xE0, 0x9F, 0xBF], 1), ([0xE1, 0x80, 0x41], 2),
        ([0xED, 0xA0, 0x80], 1), ([0xED, 0xBF, 0xBF], 1), ([0xF0, 0x80], 1), ([0xF0, 0x8F, 0xBF, 0xBF], 1),
        ([0xF4, 0x90], 1), ([0xF4, 0x8F, 0xBF, 0xC0], 3), ([0xF1, 0x80, 0x80, 0x00], 3), ([0x41, 0x42, 0xFF], 2),
    ]

    @Test(arguments: hostile)
    func validatorNamesTheFirstImpossibleByte(bytes: [UInt8], fault: Int) {
        for lead in [0, 1, 5, 8, 31, 32, 33, 64] {
            for padding in [0, 1, 3, 8, 40] {
                let text = [UInt8](repeating: 0x61, count: lead) + bytes + [UInt8](repeating: 0x61, count: padding)
                #expect(Self.firstFault(in: text, pieces: [0..<text.count]).fault == lead + fault)
                let single = (0..<text.count).map { $0..<$0 + 1 }
                #expect(Self.firstFault(in: text, pieces: single).fault == lead + fault)
            }
        }
    }

    static let wellFormed: [String] = [
        "", "Hello", "κόσμε", "日本語のテキスト", "\u{0}", "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}",
        "\u{D7FF}\u{E000}\u{FFFD}\u{FEFF}", "aé日😀b", "👩‍👩‍👧‍👦 and a long tail of plain letters behind it",
    ]

    @Test(arguments: wellFormed)
    func wellFormedTextIsAcceptedInEverySplitInTwo(_ text: String) {
        let bytes = Array(text.utf8)
        for cut in 0...bytes.count {
            let result = Self.firstFault(in: bytes, pieces: [0..<cut, cut..<bytes.count])
            #expect(result.fault == nil)
            #expect(result.isComplete)
        }
    }

    @Test func everyScalarIsAcceptedAndEverySurrogateRefused() {
        for value in UInt32(0x80)...0x10FFFF {
            let bytes = Self.encodeFreely(value)
            let padded = bytes + [0x20, 0x20, 0x20]
            let fault = padded.withRawSpan { span in
                var validator = UTF8Validator()
                return validator.validate(span)
            }
            let isSurrogate = (0xD800...0xDFFF).contains(value)
            if (fault == 1) != isSurrogate || (fault == nil) == isSurrogate {
                Issue.record("U+\(String(value, radix: 16)) was judged wrongly")
                return
            }
        }
    }

    /// UTF-8's bit layout without its prohibitions.
    private static func encodeFreely(_ value: UInt32) -> [UInt8] {
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(value >> shift & 0x3F) }
        switch value {
        case ..<0x800: return [0xC0 | UInt8(value >> 6), tail(0)]
        case ..<0x10000: return [0xE0 | UInt8(value >> 12), tail(6), tail(0)]
        default: return [0xF0 | UInt8(value >> 18), tail(12), tail(6), tail(0)]
        }
    }

    @Test func textEndingInsideACharacterIsIncomplete() {
        for bytes in [[0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0x41, 0xF0]] as [[UInt8]] {
            #expect(Self.firstFault(in: bytes, pieces: [0..<bytes.count]) == (nil, false))
        }
    }

    @Test func resetValidatorStartsAfresh() {
        var validator = UTF8Validator()
        #expect([0xE2, 0x82].withRawSpan { validator.validate($0) } == nil)
        validator.reset()
        #expect(validator == UTF8Validator())
        #expect([0x82].withRawSpan { validator.validate($0) } == 0)
    }

    @Test(arguments: UInt64(0)..<400)
    func validatorAgreesWithTheNaiveOneOnAnyBytesInAnySplit(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = Self.almostText(using: &generator)
        let expected = NaiveUTF8.judge(bytes)
        for longest in [1, 3, 7, 40, bytes.count] {
            let pieces = generator.cuts(of: bytes.count, longest: longest)
            #expect(Self.firstFault(in: bytes, pieces: pieces) == expected, "seed \(seed), pieces up to \(longest)")
        }
    }

    /// Text of all widths with runs of ASCII; three times in four a byte of it is then replaced.
    private static func almostText(using generator: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...30, using: &generator) {
            switch Int.random(in: 0...4, using: &generator) {
            case 0: bytes += [UInt8](repeating: 0x61, count: Int.random(in: 0...70, using: &generator))
            case 1: bytes += Self.encodeFreely(UInt32.random(in: 0x80...0x7FF, using: &generator))
            case 2: bytes += Self.encodeFreely(UInt32.random(in: 0x800...0xD7FF, using: &generator))
            case 3: bytes += Self.encodeFreely(UInt32.random(in: 0xE000...0xFFFF, using: &generator))
            default: bytes += Self.encodeFreely(UInt32.random(in: 0x10000...0x10FFFF, using: &generator))
            }
        }
        if let position = bytes.indices.randomElement(using: &generator),
            Bool.random(using: &generator) || position % 2 == 0
        {
            bytes[position] = generator.bytes(1)[0]
        }
        return bytes
    }
}
