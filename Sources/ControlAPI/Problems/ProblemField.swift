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
