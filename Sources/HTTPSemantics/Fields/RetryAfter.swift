/// `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Longer waits are taken for this many seconds: a day.
    package static let limit: Int64 = 86_400

    /// How many seconds to wait from `now` on, never negative; `nil` for what says neither a date nor seconds.
    package static func seconds(_ text: String, now: HTTPDate) -> Int64? {
        let text = text.trimmingBlanks
        if let seconds = text.clampedDecimal(limit: self.limit) { return seconds }
        return HTTPDate(text, now: now).map { min(max(0, $0.seconds(since: now)), self.limit) }
    }
}
