/// Spans that several options share.
extension ClosedRange<Duration> {
    /// 10 ms to 10 min.
    static var attempt: Self { .milliseconds(10) ... .seconds(600) }
    /// 1 s to 365 days.
    static var lifetime: Self { .seconds(1) ... .seconds(365 * 86_400) }
    /// 1 s to 9 h, what the kernel takes.
    static var probing: Self { .seconds(1) ... .seconds(32_400) }
    /// 0 to 1 day.
    static var day: Self { .zero ... .seconds(86_400) }
}
