extension [UInt64] {
    /// Bits that one pass of `inRisingOrder` looks at.
    private static var digitBits: Int { 11 }

    /// The same numbers in rising order, equal ones as often as they are there.
    ///
    /// For numbers that were given out one behind the other: they lie so close together that a few passes over all of
    /// them, by the digits in which they differ, cost a fraction of comparing them.
    package var inRisingOrder: [UInt64] {
        guard let least = self.min(), let greatest = self.max() else { return [] }
        var (ordered, room) = (self, self)
        let width = UInt64.bitWidth - (greatest - least).leadingZeroBitCount
        for shift in stride(from: 0, to: width, by: Self.digitBits) {
            Self.distribute(ordered, by: { Int(truncatingIfNeeded: ($0 - least) >> shift) }, to: &room)
            swap(&ordered, &room)
        }
        return ordered
    }

    /// One pass: those with the same digit stay in their order.
    private static func distribute(_ numbers: [UInt64], by digit: (UInt64) -> Int, to room: inout [UInt64]) {
        let mask = 1 << Self.digitBits - 1
        var places = [Int](repeating: 0, count: mask + 1)
        for number in numbers { places[digit(number) & mask] += 1 }
        var sum = 0
        for index in places.indices {
            let count = places[index]
            places[index] = sum
            sum += count
        }
        for number in numbers {
            room[places[digit(number) & mask]] = number
            places[digit(number) & mask] += 1
        }
    }
}
