/// A deterministic random generator (SplitMix64): the same seed gives the same numbers on every machine.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }

    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: self.next() &>> 24) }
    }

    /// Splits `0..<count` into contiguous ranges of random length from 0 to `longest`.
    package mutating func cuts(of count: Int, longest: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        while start < count {
            let end = min(count, start + Int.random(in: 0...max(longest, 1), using: &self))
            ranges.append(start..<end)
            start = end
        }
        return ranges
    }
}
