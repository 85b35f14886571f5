/// A page of connections. The `Link` header has the next one too (RFC 8288).
package struct ConnectionPage: Codable, Sendable, Equatable {
    package var items: [Connection]
    /// The next page's path and query; missing on the last.
    package var next: String?

    package init(
        items: [Connection], next: String? = nil
    ) {
        self.items = items
        self.next = next
    }
}
