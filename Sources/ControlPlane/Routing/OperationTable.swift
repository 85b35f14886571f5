import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import WireText

/// All operations of the REST interface.
struct OperationTable: Sendable {
    enum LookupResult {
        case found(Operation, parameters: [String: String])
        /// - Parameter 0: the methods that the path allows.
        case methodNotAllowed([String])
        case notFound
    }

    let operations: [Operation]

    /// - Parameter path: percent-encoded, without the query.
    func find(_ method: HTTPRequest.Method, _ path: some StringProtocol) -> LookupResult {
        guard path.first == "/" else { return .notFound }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { Substring($0) }
        var methods: [String] = []
        for operation in self.operations {
            guard let parameters = operation.template.match(segments) else { continue }
            if operation.method == method || (method == .head && operation.method == .get) {
                return .found(operation, parameters: parameters)
            }
            methods.append(operation.method.rawValue)
            if operation.method == .get { methods.append(HTTPRequest.Method.head.rawValue) }
        }
        return methods.isEmpty ? .notFound : .methodNotAllowed(Array(Set(methods)).sorted())
    }

    /// The operations of all resources.
    static func make(_ context: ControlContext) -> OperationTable {
        let connections = ConnectionsResource(context: context)
        let drains = DrainsResource(context: context, connections: connections)
        let resources: [[Operation]] = [
            HealthResource(context: context).operations, MetricsResource(context: context).operations,
            connections.operations, EventsResource(context: context).operations,
            drains.operations, NodesResource(context: context, drains: drains).operations,
            OperationsResource(context: context).operations, TransfersResource(context: context).operations,
            RoomsResource(context: context).operations, UsersResource(context: context).operations,
            ConfigurationResource(context: context).operations,
            ConfigurationSection.allCases.flatMap { EntriesResource(section: $0, context: context).operations },
        ]
        let nodes = ClusterOperations(context: context)
        let described = resources.joined().map(nodes.spanning)
        // The OpenAPI document describes the operations of this project only.
        return OperationTable(
            operations: described + OpenAPIResource(context: context, others: described).operations
                + ServerAPIResource(context: context).operations)
    }
}

/// One operation of the REST interface, declared once: routing, authorization, audit, the check of query parameters and
/// the OpenAPI document are based on it.
struct Operation: Sendable {
    typealias Handler = @Sendable (ControlCall) async throws -> Response

    /// The `operationId` of the OpenAPI document.
    let name: String
    let method: HTTPRequest.Method
    let template: PathTemplate
    let scope: Scope
    /// Its description; query parameters that it does not describe are refused.
    let document: OperationDocument
    /// Longest body in bytes.
    let bodyLimit: Int
    /// Whether it can run without its client waiting (RFC 7240 `respond-async`). Its handler accepts the call's
    /// `runningOperation` before it begins what may take long.
    let isLongRunning: Bool
    /// How it reaches the nodes of a cluster.
    var reach = NodeReach.own
    let handler: Handler

    init(
        _ name: String, _ method: HTTPRequest.Method, _ template: PathTemplate, _ scope: Scope,
        _ document: OperationDocument, bodyLimit: Int = ControlCall.bodyLimit, isLongRunning: Bool = false,
        _ handler: @escaping Handler
    ) {
        self.name = name
        self.method = method
        self.template = template
        self.scope = scope
        self.document = document
        self.bodyLimit = bodyLimit
        self.isLongRunning = isLongRunning
        self.handler = handler
    }

    /// Whether the audit log records it: it changes something, or gives access to the traffic of a connection.
    var isWrite: Bool { (self.method != .get && self.method != .head) || self.scope == .operate }

    /// Whether programs call it as a part of their own work: the audit log records only refused calls.
    var isTraffic: Bool { self.scope == .apiKey }

    static let versionSuffix = "InV1"

    /// This operation and an alias below `/v1`, for clients that use `/v1` as their base URL.
    var withVersionedAlias: [Operation] {
        let alias = Operation(
            self.name + Self.versionSuffix, self.method, PathTemplate("/v1\(self.template)"), self.scope,
            self.document, bodyLimit: self.bodyLimit, isLongRunning: self.isLongRunning, self.handler)
        return [self, alias]
    }
}

/// The path of an operation with placeholders: `/v1/connections/{id}:send`.
package struct PathTemplate: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// Describes the parameter of the path.
    package struct ParameterDocument: Sendable, Hashable {
        let description: String
        let example: String

        init(_ description: String, example: String) {
            (self.description, self.example) = (description, example)
        }
    }

    private enum Part: Sendable, Hashable {
        case literal(String)
        /// A parameter that is its segment up to `suffix`.
        case parameter(String, suffix: String)
    }

    package let description: String
    /// By the names of the parameters.
    let parameterDocuments: [String: ParameterDocument]
    private let parts: [Part]

    package init(stringLiteral text: String) {
        self.init(text)
    }

    /// - Parameter parameter: describes the last parameter.
    package init(_ text: String, _ parameter: ParameterDocument? = nil) {
        self.init(text, [:], parameter)
    }

    private init(_ text: String, _ documents: [String: ParameterDocument], _ parameter: ParameterDocument?) {
        self.description = text
        self.parts = text.split(separator: "/").map { segment in
            guard segment.hasPrefix("{"), let end = segment.firstIndex(of: "}") else {
                return .literal(String(segment))
            }
            let name = segment[segment.index(after: segment.startIndex)..<end]
            return .parameter(String(name), suffix: String(segment[segment.index(after: end)...]))
        }
        var documents = documents
        let last = self.parts.compactMap { part -> String? in
            if case .parameter(let name, _) = part { name } else { nil }
        }.last
        if let last, let parameter { documents[last] = parameter }
        self.parameterDocuments = documents
    }

    /// The path of a verb or a part of the resource.
    static func + (template: PathTemplate, suffix: String) -> PathTemplate {
        template.appending(suffix, nil)
    }

    /// - Parameter parameter: describes the parameter of the suffix.
    func appending(_ suffix: String, _ parameter: ParameterDocument?) -> PathTemplate {
        PathTemplate(self.description + suffix, self.parameterDocuments, parameter)
    }

    /// Names of the parameters.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name, _) = part { name } else { nil }
        }
    }

    /// - Parameter segments: of the request's path, percent-encoded.
    /// - Returns: the decoded parameters; `nil` if the path does not match.
    package func match(_ segments: [Substring]) -> [String: String]? {
        guard segments.count == self.parts.count else { return nil }
        var values: [String: String] = [:]
        for (part, segment) in zip(self.parts, segments) {
            switch part {
            case .literal(let text):
                guard segment == text else { return nil }
            case .parameter(let name, let suffix):
                guard segment.hasSuffix(suffix) else { return nil }
                let value = segment.dropLast(suffix.count)
                // A parameter never contains a verb such as `:send`.
                guard !value.isEmpty, !value.contains(":"), let decoded = PercentCoding.decodedText(value) else {
                    return nil
                }
                values[name] = decoded
            }
        }
        return values
    }
}
