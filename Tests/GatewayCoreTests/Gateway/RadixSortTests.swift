import GatewayCore
import TestSupport
import Testing

@Suite("Radix sort of identifiers")
struct RadixSortTests {
    @Test(
        arguments: [
            [], [7], [3, 3, 3], [.max, 0], [0, .max, 1, .max - 1], [2048, 2047, 4096, 1],
            [1 << 40, 1, 1 << 22, 1 << 41],
        ] as [[UInt64]])
    func radixSortEqualsAComparisonSort(_ numbers: [UInt64]) {
        #expect(numbers.radixSorted() == numbers.sorted())
    }

    @Test func radixSortOfAnyWidthEqualsAComparisonSort() {
        var generator = SeededGenerator(seed: 11)
        for bits in 1...64 {
            let limit = UInt64.max >> UInt64(64 - bits)
            let base = UInt64.random(in: 0...(.max - limit), using: &generator)
            let numbers = (0..<200).map { _ in base + UInt64.random(in: 0...limit, using: &generator) }
            #expect(numbers.radixSorted() == numbers.sorted(), "of \(bits) bits")
        }
    }
}
