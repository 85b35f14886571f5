/// A request executed in the background.
package struct OperationRecord: Codable, Sendable, Equatable {
    package var id: String
    /// The requested operation: an `operationId` of the document.
    package var operation: String
    /// `running`, `succeeded`, `failed` or `cancelled`.
    package var state: String
    /// Name of the caller.
    package var caller: String
    package var startedAt: String
    package var endedAt: String?
    /// The id of the connection that it is about, as soon as that has one.
    package var connection: String?
    /// Of the answer, once there is one.
    package var status: Int?
    /// Location of the created resource.
    package var location: String?
    /// Body of the response: the result, or a problem.
    package var answer: JSONValue?

    package init(id: String, operation: String, state: String, caller: String, startedAt: String) {
        self.id = id
        self.operation = operation
        self.state = state
        self.caller = caller
        self.startedAt = startedAt
    }
}

/// The operations that are under way or are remembered.
package struct OperationList: Codable, Sendable, Equatable {
    /// In the order in which they began.
    package var items: [OperationRecord]

    package init(items: [OperationRecord]) {
        self.items = items
    }
}
