/// Why a transfer came to no good end. What a server answers, be it 404, is no error.
package struct TransferError: Codable, Sendable, Equatable {
    /// Stable; for programs.
    package var code: String
    package var detail: String
    /// Whether another attempt may go better.
    package var retryable: Bool

    package init(
        code: String, detail: String, retryable: Bool
    ) {
        self.code = code
        self.detail = detail
        self.retryable = retryable
    }
}
