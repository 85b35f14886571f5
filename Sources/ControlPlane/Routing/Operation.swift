import HTTPTypes
import Hummingbird
import HummingbirdCore

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
    let isSlow: Bool
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
        self.isSlow = isSlow
        self.handler = handler
    }

    /// Whether it changes anything, or lets its caller into the traffic of a connection: what the audit log is to have.
    var isWrite: Bool { (self.method != .get && self.method != .head) || self.scope == .operate }
}

extension Operation {
    static let versionSuffix = "InV1"

    /// It, and the same below `/v1`, where whoever takes all paths from there looks for it.
    var alsoUnderVersion: [Operation] {
        let other = Operation(
            self.name + Self.versionSuffix, self.method, "/v1\(self.template.description)", self.scope,
            parameters: self.parameters, bodyLimit: self.bodyLimit, isSlow: self.isSlow, self.handler)
        return [self, other]
    }
}
