/// When the steps of a load were taken that used no network.
package struct LocalTimings: Sendable, Hashable {
    package var fetchStart: ContinuousClock.Instant
    /// When the response was there; `nil` if it never was.
    package var responseStart: ContinuousClock.Instant?
    /// When its last byte was there.
    package var responseEnd: ContinuousClock.Instant?

    package init(
        fetchStart: ContinuousClock.Instant, responseStart: ContinuousClock.Instant? = nil,
        responseEnd: ContinuousClock.Instant? = nil
    ) {
        self.fetchStart = fetchStart
        self.responseStart = responseStart
        self.responseEnd = responseEnd
    }
}
