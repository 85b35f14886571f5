import ControlAPI
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import Synchronization
import WireText

/// The OpenAPI 3.1 document, generated from the operations and the models.
package struct OpenAPIDocument {
    private let version: String
    private let access: SecuritySchemes
    private var schemas = ModelSchemas(examples: Examples.all)
    private var paths: [JSONValue.Member] = []

    init(_ operations: [Operation], context: ControlContext) {
        self.version = context.version
        self.access = context.access.current.securitySchemes
        for operation in operations { self.add(operation) }
    }

    package var json: JSONValue {
        let schemas = self.schemas.all.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value) }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Sluice control plane", "version": .string(self.version),
                "description": "Opens, lists, inspects and controls the connections of a running gateway.",
            ],
            "servers": [["url": "/"]],
            "security": self.access.requirements,
            "paths": .object(self.paths),
            "components": [
                "schemas": .object(schemas),
                "securitySchemes": self.access.schemes,
            ],
        ]
    }

    private mutating func add(_ operation: Operation) {
        let path = operation.template.description
        let method = operation.method.rawValue.lowercased()
        let description = self.describe(operation)
        if let index = self.paths.firstIndex(where: { $0.name == path }) {
            self.paths[index].value[method] = description
        } else {
            self.paths.append(JSONValue.Member(path, .object([JSONValue.Member(method, description)])))
        }
    }

    private mutating func describe(_ operation: Operation) -> JSONValue {
        let document = operation.document
        var content: JSONValue = ["operationId": .string(operation.name), "summary": .string(document.summary)]
        content["tags"] = [.string(Self.tag(operation))]
        if let scope = operation.scope.required {
            content["x-scope"] = .string(scope.rawValue)
        } else {
            content["security"] = []
        }
        let parameters = Self.parameters(operation)
        if !parameters.isEmpty { content["parameters"] = .array(parameters) }
        if !document.body.isEmpty {
            content["requestBody"] = [
                "required": .boolean(document.isBodyRequired), "content": self.contents(document.body),
            ]
        }
        content["responses"] = self.responses(operation)
        return content
    }

    // MARK: Parameters

    private static func parameters(_ operation: Operation) -> [JSONValue] {
        let path = operation.template.parameters.map { name in
            let words = operation.template.parameterDocuments[name]
            return Self.parameter(
                name, in: "path",
                [
                    "minLength": 1, "description": .string(words?.description ?? name),
                    "example": .string(words?.example ?? name),
                ]
            ).with(["required": true])
        }
        let query = operation.document.parameters.sorted { $0.key < $1.key }.map { name, schema in
            Self.parameter(name, in: "query", schema)
        }
        var descriptions = operation.document.headers
        if operation.isLongRunning {
            descriptions["Prefer"] = "respond-async: does not wait; wait=N: waits at most N seconds (RFC 7240)."
        }
        if operation.method == .post {
            descriptions["Idempotency-Key"] = "Repeating a request with its key returns the same response."
        }
        let headers = descriptions.sorted { $0.key < $1.key }.map { name, description in
            var schema: JSONValue = ["description": .string(description)]
            schema["example"] = HeaderFields.examples[name].map { .string($0) }
            return Self.parameter(name, in: "header", schema)
        }
        return path + query + headers
    }

    /// - Parameter annotated: the schema, with the parameter's description and example among its members.
    private static func parameter(_ name: String, in location: String, _ annotated: JSONValue) -> JSONValue {
        var schema = JSONValue.object([.init("type", "string")]).with(annotated)
        var parameter: JSONValue = ["name": .string(name), "in": .string(location), "required": false]
        for member in ["description", "example"] {
            if let value = schema[member] { parameter[member] = value }
            schema[member] = nil
        }
        parameter["schema"] = schema
        return parameter
    }

    /// The kind of resource; `service` for operations on the gateway itself.
    private static func tag(_ operation: Operation) -> String {
        let parts = operation.template.description.split(separator: "/")
        guard parts.first == "v1", parts.count > 1, let word = parts[1].split(separator: ":").first,
            !operation.name.hasSuffix(Operation.versionSuffix)
        else { return "service" }
        return String(word)
    }

    // MARK: Responses

    private mutating func contents(_ contents: [OperationDocument.Content]) -> JSONValue {
        var members: [JSONValue.Member] = []
        for content in contents {
            var media: JSONValue = [:]
            let schema = self.schema(content.schema)
            if schema != [:] { media["schema"] = schema }
            if let model = content.eventData { media["x-event-data"] = self.schemas.reference(model) }
            if let example = content.example { media["example"] = example }
            members.append(JSONValue.Member(content.mediaType, media))
        }
        return .object(members)
    }

    private mutating func schema(_ schema: OperationDocument.Content.Schema) -> JSONValue {
        switch schema {
        case .model(let model): return self.schemas.reference(model)
        case .list(let model): return ["type": "array", "items": self.schemas.reference(model)]
        case .entry(let section): return self.schemas.reference(section)
        case .change(let section): return self.schemas.reference(section, for: .change)
        case .entries(let section): return self.schemas.listReference(section)
        case .configuration: return self.schemas.configurationReference()
        case .plain(let schema): return schema
        case .either(let all): return ["anyOf": .array(all.map { self.schema($0) })]
        }
    }

    private mutating func responses(_ operation: Operation) -> JSONValue {
        var members: [JSONValue.Member] = []
        let responses = operation.document.responses + (operation.isLongRunning ? [.continuesAsOperation] : [])
        for response in responses {
            members.append(JSONValue.Member("\(response.status)", self.describe(response)))
        }
        let described = Set(responses.map(\.status))
        let problem = self.schemas.reference(Problem.self)
        for status in Self.problems(of: operation).subtracting(described).sorted() {
            members.append(
                JSONValue.Member(
                    "\(status)",
                    [
                        "description": .string(ReasonPhrase.of(status)),
                        "content": ["application/problem+json": ["schema": problem]],
                    ]))
        }
        return .object(members)
    }

    private mutating func describe(_ response: OperationDocument.Response) -> JSONValue {
        var description: JSONValue = ["description": .string(response.description)]
        if !response.headers.isEmpty {
            description["headers"] = .object(
                response.headers.sorted { $0.key < $1.key }.map { name, text in
                    var header: JSONValue = ["description": .string(text), "schema": ["type": "string"]]
                    header["example"] = HeaderFields.examples[name].map { .string($0) }
                    return JSONValue.Member(name, header)
                })
        }
        if !response.content.isEmpty { description["content"] = self.contents(response.content) }
        if !response.links.isEmpty {
            description["links"] = .object(
                response.links.map { name in
                    JSONValue.Member(
                        name, ["operationId": .string(name), "parameters": ["id": "$response.body#/id"]])
                })
        }
        return description
    }

    /// The statuses of all problems that an operation may respond with.
    private static func problems(of operation: Operation) -> Set<Int> {
        // Every request: a malformed query or Host, another origin, a long body, an unknown Host.
        var statuses: Set = [400, 403, 413, 421]
        if operation.scope.required != nil { statuses.formUnion([401, 429, 503]) }
        if !operation.document.body.isEmpty { statuses.formUnion([408, 415, 422]) }
        // An Idempotency-Key, which needs the whole body.
        if operation.method == .post { statuses.formUnion([408, 409, 422]) }
        return statuses.union(operation.document.problems)
    }
}

/// `/openapi.json`: the OpenAPI document.
struct OpenAPIResource: Sendable {
    /// The latest document. It depends on the access settings, which can change.
    private final class Cache: Sendable {
        let last = Mutex<(revision: UInt64, bytes: [UInt8])?>(nil)
    }

    let context: ControlContext
    /// The operations of all other resources.
    let others: [Operation]
    private let cache = Cache()

    var operations: [Operation] {
        [Operation("getDocument", .get, "/openapi.json", .none, Self.document) { _ in .json(self.bytes) }]
    }

    private static let document = OperationDocument(
        "This document",
        responses: [
            .init(
                200, "OpenAPI 3.1",
                .init(
                    .plain([
                        "type": "object", "required": ["openapi", "info", "paths"], "examples": [Examples.document],
                    ])))
        ])

    private var bytes: [UInt8] {
        let revision = self.context.access.revision
        if let last = self.cache.last.withLock({ $0 }), last.revision == revision { return last.bytes }
        let document = OpenAPIDocument(self.others + self.operations, context: self.context)
        let bytes = document.json.bytes
        self.cache.last.withLock { $0 = (revision, bytes) }
        return bytes
    }
}

/// The authentication methods of the OpenAPI document.
struct SecuritySchemes: Sendable {
    /// Alternatives.
    let requirements: JSONValue
    let schemes: JSONValue

    init(_ settings: ControlSettings) {
        var requirements: [JSONValue] = []
        var schemes: JSONValue = [:]
        if !settings.tokens.isEmpty {
            requirements.append(["bearer": []])
            schemes["bearer"] = [
                "type": "http", "scheme": "bearer", "description": "A token of control.tokens.",
            ]
        }
        if !settings.clients.isEmpty {
            requirements.append(["certificate": []])
            schemes["certificate"] = [
                "type": "mutualTLS", "description": "A certificate of control.clients.",
            ]
        }
        // Peer credentials of a Unix socket need no authentication by the client.
        if !settings.peers.isEmpty { requirements.append([:]) }
        self.requirements = .array(requirements)
        self.schemes = schemes
    }
}

/// Examples of header fields of requests and responses.
private enum HeaderFields {
    static let examples: [String: String] = [
        "ETag": "\"1gz0kx-7\"", "If-Match": "\"1gz0kx-7\"", "If-None-Match": "\"1gz0kx-7\"",
        "Idempotency-Key": "5f0c8a52-8f3e-4f3c-9f0e-6a6f1c1b2d3e", "Last-Event-ID": "5b1c8fa0.4711",
        "Link": "</v1/connections?cursor=k11.100>; rel=\"next\"", "Location": "/v1/connections/17", "Prefer": "wait=5",
        "Range": "bytes=0-1023",
    ]
}
