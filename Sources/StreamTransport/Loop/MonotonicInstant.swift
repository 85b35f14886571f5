/// A point on the loop's clock, which never goes back: the system's CLOCK_MONOTONIC, or virtual time in a simulation.
package struct MonotonicInstant: InstantProtocol, Hashable, Sendable {
    /// Nanoseconds since an origin that differs from boot to boot.
    package var nanoseconds: Int64

    @inlinable
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than any instant that a loop will live to see.
    package static let distantFuture = MonotonicInstant(nanoseconds: .max)

    /// The instant `duration` later; stops at `distantFuture` instead of overflowing.
    @inlinable
    package func advanced(by duration: Duration) -> MonotonicInstant {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(duration.clampedNanoseconds)
        return MonotonicInstant(nanoseconds: overflow ? .max : sum)
    }

    @inlinable
    package func duration(to other: MonotonicInstant) -> Duration {
        .nanoseconds(other.nanoseconds &- self.nanoseconds)
    }

    @inlinable
    package static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// Whole nanoseconds, held to the range of `Int64` (about ±292 years).
    @inlinable
    package var clampedNanoseconds: Int64 {
        let attoseconds = self.attoseconds
        // 10^9 is 2^9 times 5^9: up to an hour a division of 64 bits does, which costs a tenth of one of 128.
        if attoseconds >= 0, let halved = UInt64(exactly: attoseconds >> 9) { return Int64(halved / 1_953_125) }
        return Int64(clamping: attoseconds / 1_000_000_000)
    }
}
