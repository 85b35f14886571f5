/// What an attempt took.
package struct TransferMetrics: Codable, Sendable, Equatable {
    package var durationMs: Double
    /// Redirects that were followed.
    package var redirects: Int
    /// One for each request that was made, in their order.
    package var transactions: [TransferTransaction]

    package init(
        durationMs: Double, redirects: Int, transactions: [TransferTransaction]
    ) {
        self.durationMs = durationMs
        self.redirects = redirects
        self.transactions = transactions
    }
}
