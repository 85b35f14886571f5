/// How long the kernel took nothing more of a connection's output, as its peer did not read. Most connections have none.
package struct OutputStall: Sendable, Equatable {
    /// Since when bytes wait; `nil` while none do.
    package var since: MonotonicInstant?
    /// Of the times before.
    package var past = Duration.zero

    package init() {}

    /// In all, up to `now`.
    package func total(at now: MonotonicInstant) -> Duration {
        self.past + (self.since.map { max(.zero, $0.duration(to: now)) } ?? .zero)
    }

    mutating func begins(at now: MonotonicInstant) {
        self.since = self.since ?? now
    }

    mutating func ended(at now: MonotonicInstant) {
        self.past = self.total(at: now)
        self.since = nil
    }
}
