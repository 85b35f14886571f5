/// The operations that are under way or are remembered.
package struct OperationList: Codable, Sendable, Equatable {
    /// In the order in which they began.
    package var items: [OperationRecord]

    package init(items: [OperationRecord]) {
        self.items = items
    }
}
