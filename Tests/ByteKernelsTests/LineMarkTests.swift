import ByteKernels
import TestSupport
import Testing

@Suite("Marks of line ends")
struct LineMarkTests {
    private static let marks: Set<UInt8> = [0x0A, 0x0B, 0x0C, 0x0D, 0xC2, 0xE2]

    /// Found as one would look by hand.
    private func expected(_ bytes: [UInt8], from start: Int) -> Int {
        bytes[start...].firstIndex(where: Self.marks.contains) ?? bytes.count
    }

    @Test(arguments: 0...UInt8.max)
    func eachOfTheSixMarkBytesIsACandidate(_ byte: UInt8) {
        // At each place in a word, and after the last whole word, among neighbours that differ in one bit.
        for place in 0..<20 {
            for neighbour: UInt8 in [0x00, 0x7F, 0x80, 0xFF, 0x09, 0x0E, 0xE3, 0xC3, 0x8A] {
                var bytes = [UInt8](repeating: neighbour, count: 20)
                bytes[place] = byte
                for start in [0, place, 3] {
                    let found = bytes.withRawSpan { $0.firstLineBreakCandidate(from: start) }
                    #expect(found == self.expected(bytes, from: start), "\(neighbour) at \(place) from \(start)")
                }
            }
        }
    }

    @Test func candidatesAreFoundInAnyBytes() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let bytes = (0..<Int.random(in: 0...70, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let start = Int.random(in: 0...bytes.count, using: &generator)
            let found = bytes.withRawSpan { $0.firstLineBreakCandidate(from: start) }
            #expect(found == self.expected(bytes, from: start))
        }
    }

    @Test func lineMarksAndTextBetweenMarksAreEncoded() {
        let bytes: [UInt8] = [0x61, 0xC3, 0xA9, 0xFF, 0x62]
        #expect(bytes.withRawSpan { String(repairing: $0) } == "aé\u{FFFD}b")
        #expect([UInt8]().withRawSpan { String(repairing: $0) } == "")
    }
}
