import GatewayConfiguration
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore

/// Every operation of the REST interface.
struct OperationTable: Sendable {
    enum LookupResult {
        case found(Operation, parameters: [String: String])
        /// The path is there, with these methods.
        case methodNotAllowed([String])
        case notFound
    }

    let operations: [Operation]

    init(_ operations: [Operation]) {
        self.operations = operations
    }

    /// - Parameter path: without the query, as it was sent.
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
}

extension OperationTable {
    /// The whole interface. Each resource lists its own.
    static func make(_ context: ControlContext) -> OperationTable {
        let connections = ConnectionsResource(context: context)
        let resources =
            HealthResource(context: context).operations + MetricsResource(context: context).operations
            + connections.operations + EventsResource(context: context).operations
            + DrainsResource(context: context, connections: connections).operations
            + OperationsResource(context: context).operations
            + TransfersResource(context: context).operations + ConfigurationResource(context: context).operations
            + ConfigurationSection.allCases.flatMap { EntriesResource(section: $0, context: context).operations }
        return OperationTable(resources + OpenAPIResource(context: context, others: resources).operations)
    }
}

/// One thing that the REST interface can do: the table of them is what requests are compared with, and what
/// authorisation, audit and the OpenAPI document are held against.
struct Operation: Sendable {
    typealias Handler = @Sendable (ControlCall) async throws -> Response

    /// The `operationId` of the OpenAPI document.
    let name: String
    let method: HTTPRequest.Method
    let template: PathTemplate
    let scope: Scope
    /// Parameters of the query that it knows; others are refused.
    let parameters: Set<String>
    /// Bytes of body that it reads at most.
    let bodyLimit: Int
    /// Whether it can go on while its client does not wait.
    let isLongRunning: Bool
    let handler: Handler

    init(
        _ name: String, _ method: HTTPRequest.Method, _ template: String, _ scope: Scope,
        parameters: Set<String> = [], bodyLimit: Int = ControlCall.bodyLimit, isSlow: Bool = false,
        _ handler: @escaping Handler
    ) {
        self.name = name
        self.method = method
        self.template = PathTemplate(template)
        self.scope = scope
        self.parameters = parameters
        self.bodyLimit = bodyLimit
        self.isLongRunning = isSlow
        self.handler = handler
    }

    /// Whether it changes anything, or lets its caller into the traffic of a connection: what the audit log is to have.
    var isWrite: Bool { (self.method != .get && self.method != .head) || self.scope == .operate }
}

extension Operation {
    static let versionSuffix = "InV1"

    /// It, and the same below `/v1`, where whoever takes all paths from there looks for it.
    var withVersionedAlias: [Operation] {
        let other = Operation(
            self.name + Self.versionSuffix, self.method, "/v1\(self.template.description)", self.scope,
            parameters: self.parameters, bodyLimit: self.bodyLimit, isSlow: self.isLongRunning, self.handler)
        return [self, other]
    }
}

/// The path of an operation, with places for parameters: `/v1/connections/{id}:send`.
package struct PathTemplate: Sendable, Hashable, CustomStringConvertible {
    private enum Part: Sendable, Hashable {
        case literal(String)
        /// A parameter that fills its segment up to `suffix`.
        case parameter(String, suffix: String)
    }

    package let description: String
    private let parts: [Part]

    package init(_ text: String) {
        self.description = text
        self.parts = text.split(separator: "/").map { segment in
            guard segment.hasPrefix("{"), let end = segment.firstIndex(of: "}") else {
                return .literal(String(segment))
            }
            let name = segment[segment.index(after: segment.startIndex)..<end]
            return .parameter(String(name), suffix: String(segment[segment.index(after: end)...]))
        }
    }

    /// Names of the parameters.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name, _) = part { name } else { nil }
        }
    }

    /// - Parameter segments: of the request's path, still percent-encoded.
    /// - Returns: the parameters' values, decoded; `nil` if the path is another.
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
                // A verb belongs to the operation that names it, never to a parameter.
                guard !value.isEmpty, !value.contains(":"), let decoded = PercentText.decoded(value) else { return nil }
                values[name] = decoded
            }
        }
        return values
    }
}
