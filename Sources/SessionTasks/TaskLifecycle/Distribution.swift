/// How often values of each size occurred: a bucket for each power of two, so that counting costs a few instructions and
/// no memory. Values are whole: bytes, or microseconds.
package struct Distribution: Sendable {
    /// The largest bucket takes everything above 2^38.
    package static let bucketCount = 40

    private var buckets = InlineArray<40, UInt64>(repeating: 0)
    package private(set) var sum: UInt64 = 0
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func add(_ value: UInt64) {
        let index = value < 2 ? 0 : UInt64.bitWidth - (value - 1).leadingZeroBitCount
        self.buckets[min(index, Self.bucketCount - 1)] &+= 1
        self.sum &+= value
        self.count &+= 1
    }

    package mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let whole = UInt64(clamping: min(seconds, 1_000_000_000)) &* 1_000_000
        self.add(whole &+ UInt64(clamping: attoseconds / 1_000_000_000_000))
    }

    package mutating func add(_ other: Distribution) {
        for index in 0..<Self.bucketCount { self.buckets[index] &+= other.buckets[index] }
        self.sum &+= other.sum
        self.count &+= other.count
    }

    /// Values up to 2 to the power of `exponent`, that one included.
    package func count(upTo exponent: Int) -> UInt64 {
        (0...min(max(0, exponent), Self.bucketCount - 1)).reduce(0) { $0 &+ self.buckets[$1] }
    }
}
