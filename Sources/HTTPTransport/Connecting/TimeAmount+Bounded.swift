import NIOCore

extension TimeAmount {
    /// At most a year, so that no deadline is beyond what a clock can say.
    static func bounded(_ duration: Duration) -> TimeAmount {
        TimeAmount(min(max(duration, .zero), .seconds(365 * 86_400)))
    }
}
