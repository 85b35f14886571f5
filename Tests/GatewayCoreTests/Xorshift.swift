/// A seeded generator: the same seed, the same numbers, for ever (xorshift64*, Vigna 2016).
struct Xorshift: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) {
        self.state = (seed &+ 1) &* 0x9E37_79B9_7F4A_7C15
    }

    mutating func next() -> UInt64 {
        self.state ^= self.state >> 12
        self.state ^= self.state << 25
        self.state ^= self.state >> 27
        return self.state &* 0x2545_F491_4F6C_DD1D
    }
}
