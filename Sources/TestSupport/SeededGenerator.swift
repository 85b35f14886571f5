import StreamTransport

/// Chance for tests, replayed by its seed. Print the seed in the message of every expectation that depends on it.
package struct SeededGenerator: RandomNumberGenerator {
    package let seed: UInt64
    private var chance: SimulatedChance

    package init(seed: UInt64) {
        self.seed = seed
        self.chance = SimulatedChance(seed: seed)
    }

    package mutating func next() -> UInt64 {
        self.chance.next()
    }

    /// `count` bytes, each of the 256 values as likely.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: self.next()) }
    }
}
