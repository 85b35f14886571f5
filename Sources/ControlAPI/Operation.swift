/// A request executed in the background.
package struct OperationRecord: Codable, Sendable, Equatable {
    package var id: String
    /// `operationId` of the requested operation in the OpenAPI document.
    package var operation: String
    /// `running`, `succeeded`, `failed` or `cancelled`.
    package var state: String
    /// Name of the caller.
    package var caller: String
    package var startedAt: String
    package var endedAt: String?
    /// The id of the connection concerned, once it has one.
    package var connection: String?
    /// Status code of the response, once there is one.
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

/// Running operations, and finished ones that are still stored.
package struct OperationList: Codable, Sendable, Equatable {
    /// In the order of their start.
    package var items: [OperationRecord]

    package init(items: [OperationRecord]) {
        self.items = items
    }
}
