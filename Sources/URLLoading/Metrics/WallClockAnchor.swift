import Foundation

/// Where a clock that never goes back stands on the calendar. All dates made through one anchor keep the order of their
/// instants, whatever happens to the system's time meanwhile.
package struct WallClockAnchor: Sendable, Hashable {
    private let instant: ContinuousClock.Instant
    private let date: Date

    /// - Parameter date: what the calendar says at `instant`.
    package init(at instant: ContinuousClock.Instant = .now, date: Date = Date()) {
        self.instant = instant
        self.date = date
    }

    package func date(of instant: ContinuousClock.Instant) -> Date {
        self.date + (instant - self.instant) / .seconds(1)
    }
}
