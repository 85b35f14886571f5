import Foundation

/// What a task took, from its creation to its completion. It does not change once made.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    private let transactions: [URLSessionTaskTransactionMetrics]
    private let interval: DateInterval
    private let redirects: Int

    init(transactions: [URLSessionTaskTransactionMetrics], interval: DateInterval, redirectCount: Int) {
        self.transactions = transactions
        self.interval = interval
        self.redirects = redirectCount
        super.init()
    }

    /// Metrics of nothing.
    @available(*, deprecated, message: "Metrics are made by sessions.")
    public override init() {
        self.transactions = []
        self.interval = DateInterval(start: Date(), duration: 0)
        self.redirects = 0
        super.init()
    }

    /// One for each request that was made, in their order: those before a redirection and before an authentication, the
    /// question to the cache, and the last. Of more than 256 the first ones and the last.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] { self.transactions }
    /// From the task's creation to its completion.
    open var taskInterval: DateInterval { self.interval }
    /// Redirections that were followed.
    open var redirectCount: Int { self.redirects }

    open override var description: String {
        let transactions = self.transactions.map { "\n  \($0)" }.joined()
        return "<\(type(of: self))> { \(self.interval.duration) s, redirects: \(self.redirects) }\(transactions)"
    }
}
