import ControlAPI
import GatewayConfiguration
import GatewayCore

/// The OpenAPI description of one operation. Its query parameters are those that the operation accepts.
package struct OperationDocument: Sendable {
    package typealias Model = any ControlModel.Type

    package struct Content: Sendable {
        indirect enum Schema: Sendable {
            case model(Model)
            case list(of: Model)
            /// An entry of a list of the configuration.
            case entry(ConfigurationSection)
            /// A merge patch of such an entry.
            case change(ConfigurationSection)
            case entries(ConfigurationSection)
            case configuration
            case plain(JSONValue)
            case either([Schema])
        }

        let mediaType: String
        let schema: Schema
        /// For a schema without a model; models have examples of their own.
        var example: JSONValue?
        /// The model of the data of Server-Sent Events.
        var eventData: Model?

        init(_ mediaType: String, _ schema: Schema) {
            self.mediaType = mediaType
            self.schema = schema
        }

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

        /// Content without a schema, or with the same one as its JSON alternative.
        static func unspecified(_ mediaType: String, example: String) -> Content {
            var content = Content(mediaType, .plain([:]))
            content.example = .string(example)
            return content
        }

        static func bytes(_ mediaType: String) -> Content {
            Content(mediaType, .plain(["type": "string", "format": "binary"]))
        }

        /// Server-Sent Events with JSON data. The schema describes one event, as tools expect for streams.
        static func events(of model: Model, example: JSONValue) -> Content {
            let data: JSONValue = [
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

    package struct Response: Sendable {
        let status: Int
        let description: String
        let content: [Content]
        /// Descriptions of header fields, by name.
        let headers: [String: String]
        /// Operations on the resource whose `id` is in the body.
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
    /// Schemas of query parameters, by name.
    let parameters: [String: JSONValue]
    /// Descriptions of header fields, by name.
    let headers: [String: String]
    let body: [Content]
    let isBodyRequired: Bool
    let responses: [Response]
    /// Problem statuses in addition to those of every operation.
    let problems: [Int]

    init(
        _ summary: String, parameters: [String: JSONValue] = [:], headers: [String: String] = [:],
        body: [Content] = [], isBodyRequired: Bool = false, responses: [Response], problems: [Int] = []
    ) {
        self.summary = summary
        self.parameters = parameters
        self.headers = headers
        self.body = body
        self.isBodyRequired = isBodyRequired
        self.responses = responses
        self.problems = problems
    }
}

extension OperationDocument.Response {
    /// Of operations that can run without their client waiting.
    static let continuesAsOperation = Self(
        202, "Continues as an operation", .json(OperationRecord.self), headers: ["Location": "URL of the operation."])
}

/// Header fields that several operations have.
extension [String: String] {
    static let wait: Self = ["Prefer": "wait=N: responds after at most N seconds (RFC 7240)."]
    static let location: Self = ["Location": "URL of the resource."]
    static let nextPage: Self = ["Link": "The next page (RFC 8288)."]
}
