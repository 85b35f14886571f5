/// The route that a request takes.
package struct RouteMatch: Hashable, Sendable {
    /// Its place in the list that the table was made of.
    package let index: Int
    /// From left to right.
    package let parameters: [RouteParameter]
    /// What stands behind the first `?`, still percent-encoded; `nil` without one.
    package let query: String?

    package init(index: Int, parameters: [RouteParameter], query: String?) {
        self.index = index
        self.parameters = parameters
        self.query = query
    }

    /// The decoded value of a parameter.
    package func value(of name: String) -> String? {
        self.parameters.first { $0.name == name }?.value
    }

    /// What `ResourceTemplate` fills its places with.
    package var encodedParameters: [String: String] {
        Dictionary(self.parameters.map { ($0.name, $0.encoded) }, uniquingKeysWith: { first, _ in first })
    }
}
