/// Further attempts when an upstream cannot be connected to. Only what happens before the first byte was sent is tried
/// again.
package struct RetryPolicy: Sendable, Equatable {
    /// Attempts after the first, 0 to 100, each at the endpoint that the policy names next.
    package var attempts = 2
    /// The wait before the first of them; it doubles from attempt to attempt, and each is shortened by chance by up to
    /// a half. 0 to 1 min.
    package var initialDelay: Duration = .milliseconds(100)
    /// The longest wait, `initialDelay` to 10 min.
    package var maximumDelay: Duration = .seconds(5)

    package init() {}
}
