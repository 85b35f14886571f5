import GatewayCore
import StreamTransport

/// One moment on both clocks, so that an instant of a loop is always shown as the same time of day.
package struct TimeAnchor: Sendable {
    package let instant: MonotonicInstant
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    package init(instant: MonotonicInstant, milliseconds: Int64) {
        self.instant = instant
        self.milliseconds = milliseconds
    }

    /// RFC 3339 in UTC with milliseconds.
    package func text(_ instant: MonotonicInstant) -> String {
        WallClock.text(milliseconds: self.milliseconds(of: instant))
    }

    /// Since 1970-01-01T00:00:00Z.
    package func milliseconds(of instant: MonotonicInstant) -> Int64 {
        let microseconds = (instant.nanoseconds &- self.instant.nanoseconds) / 1000
        let (whole, rest) = microseconds.quotientAndRemainder(dividingBy: 1000)
        return self.milliseconds &+ (rest < 0 ? whole - 1 : whole)
    }
}
