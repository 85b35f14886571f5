/// What parameters mean wherever they stand.
enum ParameterDocuments {
    /// Of the query, where the operation's own document says nothing.
    static let everywhere: [String: DocumentValue] = [
        "cursor": ["description": "Where a page begins: taken from the page before.", "example": "k11.100"]
    ]

    private static let names: [String: (description: String, example: String)] = [
        "connections": ("The connection's id: 17, or 17u for what the gateway opened for 17.", "17"),
        "drains": ("The drain's id.", "1"), "operations": ("The operation's id.", "1"),
        "transfers": ("The transfer's id.", "3"), "listeners": ("The listener's name.", "web"),
        "routes": ("The route's name.", "chat"), "upstreams": ("The upstream's name.", "backend"),
    ]

    /// - Parameter tag: of the operation.
    static func inPath(_ name: String, of tag: String) -> DocumentValue {
        let words = Self.names[tag] ?? (name, name)
        return [
            "minLength": 1, "description": .string(words.description), "example": .string(words.example),
        ]
    }

    /// Of requests and answers.
    static let headerExamples: [String: String] = [
        "ETag": "\"1gz0kx-7\"", "If-Match": "\"1gz0kx-7\"", "If-None-Match": "\"1gz0kx-7\"",
        "Idempotency-Key": "5f0c8a52-8f3e-4f3c-9f0e-6a6f1c1b2d3e", "Last-Event-ID": "4711",
        "Link": "</v1/connections?cursor=k11.100>; rel=\"next\"", "Location": "/v1/connections/17", "Prefer": "wait=5",
        "Range": "bytes=0-1023",
    ]
}
