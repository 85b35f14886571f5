import GatewayConfiguration
import GatewayCore

/// What the OpenAPI document says of one operation, beside what the table of operations says.
package struct OperationDocument: Sendable {
    package typealias Model = any (Decodable & Sendable).Type

    package struct Content: Sendable {
        /// What the body is of.
        indirect enum Schema: Sendable {
            case model(Model)
            case list(of: Model)
            /// An entry of a list of the configuration, and what changes one.
            case entry(ConfigurationSection)
            case change(ConfigurationSection)
            case entries(ConfigurationSection)
            case configuration
            case plain(OrderedJSON)
            case either([Schema])
        }

        let mediaType: String
        let schema: Schema
        /// Of what has no model, whose example is that of its schema.
        var example: OrderedJSON?
        /// Of Server-Sent Events: what the data of each is.
        var eventData: Model?

        init(_ mediaType: String, _ schema: Schema) {
            self.mediaType = mediaType
            self.schema = schema
        }

        /// JSON.
        init(_ schema: Schema) {
            self.init("application/json", schema)
        }

        static func json(_ model: Model) -> Content { Content(.model(model)) }

        static func json(_ model: Model, or others: Model...) -> Content {
            Content(.either([.model(model)] + others.map { .model($0) }))
        }

        static func list(_ model: Model) -> Content { Content(.list(of: model)) }

        static func text(_ mediaType: String, example: String) -> Content {
            var content = Content(mediaType, .plain(["type": "string"]))
            content.example = .string(example)
            return content
        }

        /// What has no form of its own, or the same as JSON beside it: only an example tells of it.
        static func unspecified(_ mediaType: String, example: String) -> Content {
            var content = Content(mediaType, .plain([:]))
            content.example = .string(example)
            return content
        }

        static func bytes(_ mediaType: String) -> Content {
            Content(mediaType, .plain(["type": "string", "format": "binary"]))
        }

        /// Server-Sent Events, each with JSON for its data. The schema is that of one event, as tools take it for streams.
        static func events(of model: Model, example: OrderedJSON) -> Content {
            let data: OrderedJSON = [
                "type": "string", "contentMediaType": "application/json",
                "description": "JSON of the schema in x-event-data.",
            ]
            var content = Content(
                "text/event-stream",
                .plain([
                    "type": "object", "description": "One Server-Sent Event of the stream.",
                    "properties": ["id": ["type": "string"], "event": ["type": "string"], "data": data],
                    "required": ["event", "data"],
                ]))
            content.eventData = model
            content.example = example
            return content
        }
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
    var parameters: [String: OrderedJSON] = [:]
    /// Header fields that it heeds, with what they say.
    var headers: [String: String] = [:]
    var body: [Content] = []
    var isBodyRequired = false
    let answers: [Answer]
    /// Beside what every operation may answer.
    var problems: [Int] = []

    init(
        _ summary: String, parameters: [String: OrderedJSON] = [:], headers: [String: String] = [:],
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
