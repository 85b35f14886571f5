/// Why a request failed (RFC 9457), sent as `application/problem+json`.
package struct Problem: Codable, Sendable, Equatable {
    /// Always `about:blank`; `code` identifies the problem.
    package var type: String
    package var title: String
    package var status: Int
    /// Stable, for programs.
    package var code: String
    /// What is wrong and what to do about it.
    package var detail: String
    /// Whether the same request may succeed later.
    package var retryable: Bool
    /// Members and parameters of the request that are wrong.
    package var errors: [ProblemField]?
    /// Final state of the connection, if it is closed.
    package var connection: Connection?

    package init(
        type: String = "about:blank", title: String, status: Int, code: String, detail: String, retryable: Bool,
        errors: [ProblemField]? = nil, connection: Connection? = nil
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.errors = errors
        self.connection = connection
    }
}

/// One member or parameter of a request that is wrong.
package struct ProblemField: Codable, Sendable, Equatable {
    /// JSON Pointer into the body (RFC 6901).
    package var pointer: String?
    /// Name of the query parameter.
    package var parameter: String?
    package var detail: String

    package init(pointer: String? = nil, parameter: String? = nil, detail: String) {
        self.pointer = pointer
        self.parameter = parameter
        self.detail = detail
    }
}
