/// A request executed in the background.
package struct OperationRecord: ControlModel {
    @Member package var id = ""
    @Member("`operationId` of the requested operation in the OpenAPI document.") package var operation = ""
    @Member(.words(["running", "succeeded", "failed", "cancelled"])) package var state = ""
    @Member("Name of the caller.") package var caller = ""
    @Member(.time()) package var startedAt = ""
    @Member(.time()) package var endedAt: String?
    @Member("The id of the connection concerned, once it has one.") package var connection: String?
    @Member("Status code of the response, once there is one.") package var status: Int?
    @Member("Location of the created resource.") package var location: String?
    @Member("Body of the response: the result, or a problem.") package var answer: JSONValue?

    package init() {}
}

/// Running operations, and finished ones that are still stored.
package struct OperationList: ControlModel {
    @Member("In the order of their start.") package var items: [OperationRecord] = []

    package init() {}
}
