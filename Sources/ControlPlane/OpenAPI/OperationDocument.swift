/// What the OpenAPI document says of one operation, beside what the table of operations says.
package struct OperationDocument: Sendable {
    package struct Content: Sendable {
        let mediaType: String
        /// `nil`: bytes or text without a model.
        let model: (any (Decodable & Sendable).Type)?
        var isList = false
        /// What may stand in the model's place.
        var others: [any (Decodable & Sendable).Type] = []

        static func json(_ model: any (Decodable & Sendable).Type) -> Content {
            Content(mediaType: "application/json", model: model)
        }

        static func json(
            _ model: any (Decodable & Sendable).Type, or others: any (Decodable & Sendable).Type...
        ) -> Content {
            Content(mediaType: "application/json", model: model, others: others)
        }

        static func list(_ model: any (Decodable & Sendable).Type) -> Content {
            Content(mediaType: "application/json", model: model, isList: true)
        }

        static func other(_ mediaType: String) -> Content { Content(mediaType: mediaType, model: nil) }
    }

    package struct Answer: Sendable {
        let status: Int
        let description: String
        let content: [Content]
        /// Header fields, by name, with what they say.
        let headers: [String: String]
        /// Operations on what the body names with `id`.
        let links: [String]

        init(
            _ status: Int, _ description: String, _ content: Content..., headers: [String: String] = [:],
            links: [String] = []
        ) {
            self.links = links
            self.status = status
            self.description = description
            self.content = content
            self.headers = headers
        }
    }

    let summary: String
    /// Schemas of the parameters of the query, by name.
    var parameters: [String: DocumentValue] = [:]
    /// Header fields that it heeds, with what they say.
    var headers: [String: String] = [:]
    var body: [Content] = []
    var isBodyRequired = false
    let answers: [Answer]
    /// Beside what every operation may answer.
    var problems: [Int] = []

    init(
        _ summary: String, parameters: [String: DocumentValue] = [:], headers: [String: String] = [:],
        body: [Content] = [], isBodyRequired: Bool = false, answers: [Answer], problems: [Int] = []
    ) {
        self.summary = summary
        self.parameters = parameters
        self.headers = headers
        self.body = body
        self.isBodyRequired = isBodyRequired
        self.answers = answers
        self.problems = problems
    }
}
