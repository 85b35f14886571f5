import StreamTransport

/// How a connection ended.
package struct ClosingRecord: Sendable {
    package let at: MonotonicInstant
    package let reason: TerminationReason
    /// In words, where there are any.
    package let detail: String?

    package init(at: MonotonicInstant, reason: TerminationReason, detail: String? = nil) {
        self.at = at
        self.reason = reason
        self.detail = detail
    }
}
