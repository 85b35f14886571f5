/// A page of transfers. The `Link` header has the next one too (RFC 8288).
package struct TransferPage: Codable, Sendable, Equatable {
    package var items: [Transfer]
    /// The next page's path and query; missing on the last.
    package var next: String?

    package init(
        items: [Transfer], next: String? = nil
    ) {
        self.items = items
        self.next = next
    }
}
