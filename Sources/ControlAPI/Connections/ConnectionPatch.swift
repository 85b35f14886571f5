/// PATCH: what is missing stays as it is.
package struct ConnectionPatch: Codable, Sendable, Equatable, StrictlyRead {
    package var description: String?
    package var priority: Double?
    /// All of them anew.
    package var labels: [String: String]?

    package init(
        description: String? = nil, priority: Double? = nil, labels: [String: String]? = nil
    ) {
        self.description = description
        self.priority = priority
        self.labels = labels
    }

    package static let members = [
        "description", "priority", "labels",
    ]
}
