extension [UInt64] {
    /// Bits of a number that one pass of `radixSorted` sorts by.
    private static var digitBits: Int { 11 }

    /// The numbers in ascending order, duplicates included.
    ///
    /// For identifiers, which are assigned one after the other: they differ in few low digits, so that a few passes over
    /// all of them cost a fraction of comparing them.
    package func radixSorted() -> [UInt64] {
        guard let least = self.min(), let greatest = self.max() else { return [] }
        var (sorted, buffer) = (self, self)
        let width = UInt64.bitWidth - (greatest - least).leadingZeroBitCount
        for shift in stride(from: 0, to: width, by: Self.digitBits) {
            Self.distribute(sorted, by: { Int(truncatingIfNeeded: ($0 - least) >> shift) }, to: &buffer)
            swap(&sorted, &buffer)
        }
        return sorted
    }

    /// One pass. Numbers with the same digit keep their order.
    private static func distribute(_ numbers: [UInt64], by digit: (UInt64) -> Int, to output: inout [UInt64]) {
        let mask = 1 << Self.digitBits - 1
        var offsets = [Int](repeating: 0, count: mask + 1)
        for number in numbers { offsets[digit(number) & mask] += 1 }
        var sum = 0
        for index in offsets.indices {
            let count = offsets[index]
            offsets[index] = sum
            sum += count
        }
        for number in numbers {
            output[offsets[digit(number) & mask]] = number
            offsets[digit(number) & mask] += 1
        }
    }
}
