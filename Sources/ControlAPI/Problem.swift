/// Why a request failed (RFC 9457), sent as `application/problem+json`.
package struct Problem: ControlModel {
    @Member("Always `about:blank`; `code` identifies the problem.") package var type = "about:blank"
    @Member package var title = ""
    @Member(.range(400...599)) package var status = 0
    @Member("Stable, for programs.") package var code = ""
    @Member("What is wrong and what to do about it.") package var detail = ""
    @Member("Whether the same request may succeed later.") package var retryable = false
    @Member("Members and parameters of the request that are wrong.") package var errors: [ProblemField]?
    @Member("Final state of the connection, if it is closed.") package var connection: Connection?

    package init() {}
}

/// One member or parameter of a request that is wrong.
package struct ProblemField: ControlModel {
    @Member("JSON Pointer into the body (RFC 6901).") package var pointer: String?
    @Member("Name of the query parameter.") package var parameter: String?
    @Member package var detail = ""

    package init() {}
}
