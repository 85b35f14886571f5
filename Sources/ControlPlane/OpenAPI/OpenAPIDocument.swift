import ControlAPI
import GatewayCore
import HTTPTypes

/// Describes the whole interface (OpenAPI 3.1), out of the table of operations, the wire models, and the documents.
package struct OpenAPIDocument {
    private let version: String
    private let access: AccessSchemes
    private var schemas = ModelSchemas(notes: FieldNotes.all)
    private var paths: [DocumentValue.Member] = []
    /// Operations without a document, and documents without an operation.
    package private(set) var gaps: [String] = []

    /// What notes beside the models are about, as `Model.member`.
    package static var notedMembers: Set<String> { Set(FieldNotes.all.keys) }

    init(_ operations: [Operation], documents: [String: OperationDocument], context: ControlContext) {
        self.version = context.version
        self.access = context.access.now.schemes
        for operation in operations {
            guard let document = documents[operation.name] else {
                self.gaps.append(operation.name)
                continue
            }
            self.add(operation, document)
        }
        self.gaps += Set(documents.keys).subtracting(operations.map(\.name)).sorted()
    }

    package var json: DocumentValue {
        let schemas = self.schemas.all.sorted { $0.key < $1.key }.map { DocumentValue.Member($0.key, $0.value) }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Sluice control plane", "version": .string(self.version),
                "description": "Opens, lists, inspects and steers the connections of a running gateway.",
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

    private mutating func add(_ operation: Operation, _ document: OperationDocument) {
        let path = operation.template.description
        let method = operation.method.rawValue.lowercased()
        let content: DocumentValue
        do {
            content = try self.describe(operation, document)
        } catch {
            self.gaps.append("\(operation.name): \(error)")
            return
        }
        if let index = self.paths.firstIndex(where: { $0.name == path }) {
            self.paths[index].value[method] = content
        } else {
            self.paths.append(DocumentValue.Member(path, .object([DocumentValue.Member(method, content)])))
        }
    }

    private mutating func describe(_ operation: Operation, _ document: OperationDocument) throws -> DocumentValue {
        var content: DocumentValue = ["operationId": .string(operation.name), "summary": .string(document.summary)]
        let tag = operation.template.description.split(separator: "/").first { $0 != "v1" } ?? "service"
        content["tags"] = [.string(String(tag))]
        if let scope = operation.scope.needed {
            content["x-scope"] = .string(scope.rawValue)
        } else {
            content["security"] = []
        }
        let parameters = Self.parameters(operation, document)
        if !parameters.isEmpty { content["parameters"] = .array(parameters) }
        if !document.body.isEmpty {
            content["requestBody"] = [
                "required": .boolean(document.isBodyRequired), "content": try self.contents(document.body),
            ]
        }
        content["responses"] = try self.answers(operation, document)
        return content
    }

    // MARK: Parameters

    private static func parameters(_ operation: Operation, _ document: OperationDocument) -> [DocumentValue] {
        let path = operation.template.parameters.map { name -> DocumentValue in
            ["name": .string(name), "in": "path", "required": true, "schema": ["type": "string", "minLength": 1]]
        }
        let query = operation.parameters.sorted().map { name -> DocumentValue in
            [
                "name": .string(name), "in": "query", "required": false,
                "schema": document.parameters[name] ?? ["type": "string"],
            ]
        }
        var known = document.headers
        if operation.method == .post {
            known["Idempotency-Key"] = "The same key with the same request again gives the same answer again."
        }
        let headers = known.sorted { $0.key < $1.key }.map { name, description -> DocumentValue in
            [
                "name": .string(name), "in": "header", "required": false, "description": .string(description),
                "schema": ["type": "string"],
            ]
        }
        return path + query + headers
    }

    // MARK: Answers

    private mutating func contents(_ contents: [OperationDocument.Content]) throws -> DocumentValue {
        var members: [DocumentValue.Member] = []
        for content in contents {
            var media: DocumentValue = [:]
            if let model = content.model {
                let schema = try self.schemas.reference(model)
                let others = try content.others.map { try self.schemas.reference($0) }
                media["schema"] =
                    content.isList
                    ? ["type": "array", "items": schema]
                    : others.isEmpty ? schema : ["anyOf": .array([schema] + others)]
            }
            members.append(DocumentValue.Member(content.mediaType, media))
        }
        return .object(members)
    }

    private mutating func answers(_ operation: Operation, _ document: OperationDocument) throws -> DocumentValue {
        var members: [DocumentValue.Member] = []
        for answer in document.answers {
            var content: DocumentValue = ["description": .string(answer.description)]
            if !answer.headers.isEmpty {
                content["headers"] = .object(
                    answer.headers.sorted { $0.key < $1.key }.map { name, description in
                        DocumentValue.Member(
                            name, ["description": .string(description), "schema": ["type": "string"]])
                    })
            }
            if !answer.content.isEmpty { content["content"] = try self.contents(answer.content) }
            if !answer.links.isEmpty {
                content["links"] = .object(
                    answer.links.map { name in
                        let link: DocumentValue = [
                            "operationId": .string(name), "parameters": ["id": "$response.body#/id"],
                        ]
                        return DocumentValue.Member(name, link)
                    })
            }
            members.append(DocumentValue.Member("\(answer.status)", content))
        }
        let told = Set(document.answers.map(\.status))
        let problem = try self.schemas.reference(Problem.self)
        for status in Self.problems(of: operation, document).subtracting(told).sorted() {
            members.append(
                DocumentValue.Member(
                    "\(status)",
                    [
                        "description": .string(ControlProblem.title(status)),
                        "content": ["application/problem+json": ["schema": problem]],
                    ]))
        }
        return .object(members)
    }

    /// Every problem that an operation may answer.
    static func problems(of operation: Operation, _ document: OperationDocument) -> Set<Int> {
        // Of every request: a malformed query or Host, another origin, an unknown Host.
        var statuses: Set = [400, 403, 413, 421]
        if operation.scope.needed != nil { statuses.formUnion([401, 429, 503]) }
        if !document.body.isEmpty { statuses.formUnion([408, 415, 422]) }
        // Of an Idempotency-Key, for which the body is collected.
        if operation.method == .post { statuses.formUnion([408, 409, 422]) }
        return statuses.union(document.problems)
    }
}
