import Foundation

/// What becomes the metrics of a task, gathered from its creation on. It belongs to whoever runs the task.
package struct TaskMetricsRecord: Sendable {
    /// Transactions kept at most. A task that goes on, as one whose delegate never tires of offering credentials, keeps
    /// the first ones and the last.
    package static let transactionLimit = 256

    private let anchor: WallClockAnchor
    private let creation: ContinuousClock.Instant
    private var transactions: [TransactionRecord] = []
    package private(set) var redirectCount = 0

    /// - Parameter date: what the calendar says at `instant`.
    package init(createdAt instant: ContinuousClock.Instant = .now, date: Date = Date()) {
        self.anchor = WallClockAnchor(at: instant, date: date)
        self.creation = instant
    }

    /// Adds a transaction that has ended, in whatever way; in the order in which they began.
    package mutating func add(_ transaction: TransactionRecord) {
        if self.transactions.count == Self.transactionLimit { self.transactions.removeLast() }
        self.transactions.append(transaction)
    }

    /// A redirection is followed.
    package mutating func redirected() {
        self.redirectCount += 1
    }

    package func metrics(completedAt end: ContinuousClock.Instant = .now) -> URLSessionTaskMetrics {
        let seconds = max(.zero, end - self.creation) / .seconds(1)
        return URLSessionTaskMetrics(
            transactions: self.transactions.map { URLSessionTaskTransactionMetrics($0, self.anchor) },
            interval: DateInterval(start: self.anchor.date(of: self.creation), duration: seconds),
            redirectCount: self.redirectCount)
    }
}
