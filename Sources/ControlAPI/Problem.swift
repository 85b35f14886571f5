/// Why something was not done (RFC 9457), as `application/problem+json`.
package struct Problem: Codable, Sendable, Equatable {
    /// `about:blank`: the code says it.
    package var type: String
    package var title: String
    package var status: Int
    /// Stable; for programs.
    package var code: String
    /// What is wrong and what to do about it.
    package var detail: String
    /// Whether the same request may succeed later.
    package var retryable: Bool
    /// Where in the request.
    package var errors: [ProblemField]?
    /// The closing record of a connection that is over.
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

/// One thing that is wrong with a request.
package struct ProblemField: Codable, Sendable, Equatable {
    /// Where in the body (RFC 6901).
    package var pointer: String?
    /// Which parameter of the query.
    package var parameter: String?
    package var detail: String

    package init(
        pointer: String? = nil, parameter: String? = nil, detail: String
    ) {
        self.pointer = pointer
        self.parameter = parameter
        self.detail = detail
    }
}
