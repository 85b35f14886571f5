/// The one source of chance in a simulation: SplitMix64, whose whole state is its seed, so that a seed replays a run
/// exactly.
package struct SimulatedChance: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// True with `probability` (0 never, 1 always). Draws only when the answer is open, so that an unused fault costs
    /// no chance.
    mutating func happens(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        guard probability < 1 else { return true }
        return Double(self.next() >> 11) * 0x1p-53 < probability
    }

    mutating func count(in range: ClosedRange<Int>) -> Int {
        range.lowerBound == range.upperBound ? range.lowerBound : Int.random(in: range, using: &self)
    }

    /// In whole nanoseconds.
    mutating func duration(in range: ClosedRange<Duration>) -> Duration {
        let low = range.lowerBound.clampedNanoseconds
        let high = range.upperBound.clampedNanoseconds
        return low == high ? range.lowerBound : .nanoseconds(Int64.random(in: low...high, using: &self))
    }
}
