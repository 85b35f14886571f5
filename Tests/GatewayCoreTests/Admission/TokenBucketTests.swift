import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Bucket of tokens")
struct TokenBucketTests {
    private static func at(_ milliseconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: Int64(milliseconds) * 1_000_000)
    }

    private static func taken(_ bucket: inout TokenBucket, at milliseconds: Int) -> Int {
        var count = 0
        while count < 1000, bucket.take(at: Self.at(milliseconds)) { count += 1 }
        return count
    }

    @Test func aQuietTimeSavesUpTheBurstAndNoMore() {
        var bucket = TokenBucket(AcceptRate(perSecond: 10, burst: 5))
        #expect(Self.taken(&bucket, at: 0) == 5)
        #expect(Self.taken(&bucket, at: 99) == 0)
        #expect(Self.taken(&bucket, at: 100) == 1)
        #expect(Self.taken(&bucket, at: 350) == 2)
        #expect(Self.taken(&bucket, at: 400) == 1)
        #expect(Self.taken(&bucket, at: 1_000_000) == 5)
    }

    @Test func aFullBucketCanBeEmptiedAtAnyInstant() {
        for start in [Int64.min, -1, 0, 1, Int64.max / 2] {
            var bucket = TokenBucket(AcceptRate(perSecond: 1_000_000, burst: 3))
            let now = MonotonicInstant(nanoseconds: start)
            let answers = (0..<4).map { _ in bucket.take(at: now) }
            #expect(answers == [true, true, true, false])
        }
    }

    @Test func theFarthestInstantsAreRefusedWithoutHarm() {
        var bucket = TokenBucket(AcceptRate(perSecond: 1, burst: 1))
        #expect(bucket.take(at: .distantFuture) == false)
        #expect(bucket.take(at: Self.at(0)) == true)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func bucketNeverGivesMoreThanRateAndBurst(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rate = AcceptRate(
            perSecond: Int.random(in: 1...500, using: &random), burst: Int.random(in: 1...50, using: &random))
        var bucket = TokenBucket(rate)
        var now = 0
        var taken = 0
        for _ in 0..<500 {
            now += Int.random(in: 0...20, using: &random)
            for _ in 0..<Int.random(in: 0...20, using: &random) where bucket.take(at: Self.at(now)) { taken += 1 }
        }
        #expect(Double(taken) <= Double(rate.burst) + Double(rate.perSecond) * Double(now) / 1000 + 1, "seed \(seed)")
        #expect(taken > 0)
    }
}
