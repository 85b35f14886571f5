import ControlAPI
import FoundationEssentials
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// An error response: a problem document (RFC 9457) with its status and header fields.
package struct ControlProblem: Error {
    package var status: Int
    /// Stable identifier for programs.
    package var code: String
    /// Explanation and remedy for people.
    package var detail: String
    package var isRetryable = false
    package var errors: [ProblemField] = []
    /// `Retry-After`, in seconds.
    package var retryAfter: Int?
    /// `WWW-Authenticate`.
    package var challenge: String?
    /// Whether the rest of the request is not read.
    package var closesConnection = false
    /// `Allow`.
    package var allowedMethods: [String] = []
    /// The length of the content whose requested range is not satisfiable, in bytes.
    package var contentLength: Int64?
    /// Whether the audit log has an entry for it already.
    var isAudited = false
    /// A connection's closing record, as JSON.
    package var connection: [UInt8]?

    package init(_ status: Int, _ code: String, _ detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    package func retryable(after seconds: Int? = nil) -> ControlProblem {
        var problem = self
        problem.isRetryable = true
        problem.retryAfter = seconds
        return problem
    }

    package func at(pointer: String) -> ControlProblem {
        var problem = self
        problem.errors.append(ProblemField(pointer: pointer, detail: self.detail))
        return problem
    }

    /// The same problem, whose pointers are relative to `pointer`.
    package func nested(under pointer: String) -> ControlProblem {
        var problem = self
        problem.errors = self.errors.map { error in
            ProblemField(
                pointer: error.pointer.map { pointer + $0 }, parameter: error.parameter, detail: error.detail)
        }
        return problem
    }

    package func at(parameter: String) -> ControlProblem {
        var problem = self
        problem.errors.append(ProblemField(parameter: parameter, detail: self.detail))
        return problem
    }

    package var json: [UInt8] {
        var text = JSONText(capacity: 512)
        text.beginObject()
        text.member("type", "about:blank")
        text.member("title", Self.title(self.status))
        text.member("status", self.status)
        text.member("code", self.code)
        text.member("detail", self.detail)
        text.member("retryable", self.isRetryable)
        if !self.errors.isEmpty {
            text.key("errors")
            text.beginArray()
            for error in self.errors {
                text.beginObject()
                text.member("pointer", error.pointer)
                text.member("parameter", error.parameter)
                text.member("detail", error.detail)
                text.endObject()
            }
            text.endArray()
        }
        text.member("connection", json: self.connection)
        text.endObject()
        return text.bytes
    }

    /// The document followed by a line feed, which terminals and line-based tools expect.
    package var body: ByteBuffer { ByteBuffer(bytes: self.json + [UInt8(ascii: "\n")]) }

    /// The reason phrase of a status (RFC 9110 §15).
    static func title(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: "Internal Server Error"
        }
    }

    package var response: Response {
        var headers: HTTPTypes.HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        if let seconds = self.retryAfter { headers[.retryAfter] = "\(seconds)" }
        if let challenge = self.challenge { headers[.wwwAuthenticate] = challenge }
        // RFC 9110 §15.5.17.
        if let length = self.contentLength { headers[.contentRange] = "bytes */\(length)" }
        if !self.allowedMethods.isEmpty { headers[.allow] = self.allowedMethods.joined(separator: ", ") }
        return Response(
            status: HTTPResponse.Status(code: self.status), headers: headers,
            body: ResponseBody(byteBuffer: self.body))
    }
}

// MARK: From other errors

extension ControlProblem {
    package init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context):
            let pointer = JSONPointer.text(context.codingPath + [key])
            self = Self(422, "missing-member", "The member \(pointer) is missing.").at(pointer: pointer)
        case .typeMismatch(let type, let context):
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(422, "wrong-type", "\(Self.subject(pointer)) must be \(Self.expected(type)).")
                .at(pointer: pointer)
        case .valueNotFound(let type, let context):
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(422, "wrong-type", "\(Self.subject(pointer)) must be \(Self.expected(type)), not null.")
                .at(pointer: pointer)
        case .dataCorrupted(let context) where !context.codingPath.isEmpty:
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(422, "invalid-value", "\(pointer) has an invalid value.").at(pointer: pointer)
        case .dataCorrupted: self = .malformedJSON
        @unknown default: self = .malformedJSON
        }
    }

    static let malformedJSON = ControlProblem(400, "malformed-json", "The body is not valid JSON (RFC 8259).")

    private static func subject(_ pointer: String) -> String { pointer.isEmpty ? "The body" : pointer }

    private static func expected(_ type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Double.Type: "a number"
        case is any BinaryInteger.Type: "a whole number"
        case is any Collection.Type: "\(type)".hasPrefix("Dictionary") ? "an object" : "an array"
        default: "an object"
        }
    }

    /// 400 for a query parameter with an invalid value.
    static func invalid(parameter: String, _ detail: String) -> ControlProblem {
        ControlProblem(400, "invalid-parameter", detail).at(parameter: parameter)
    }

    /// 422 for a member with an invalid value.
    package static func invalid(_ pointer: String, _ detail: String) -> ControlProblem {
        ControlProblem(422, "invalid-value", detail).at(pointer: pointer)
    }

    /// 422 with a pointer to the member that makes the opening handshake invalid.
    init(_ error: HandshakeUsageError) {
        switch error {
        case .malformedField(let field):
            self = .invalid(
                JSONPointer.member(field.name, of: "/headers"),
                "A header's name must be a token, and its value one line without surrounding spaces.")
        case .reservedField(let name):
            self = .invalid(
                JSONPointer.member(name, of: "/headers"), "\(name) is set by the handshake; leave it out.")
        case .malformedSubprotocol:
            self = .invalid("/subprotocols", "A subprotocol must be a token (RFC 6455 §4.1).")
        case .repeatedSubprotocol(let name):
            self = .invalid("/subprotocols", "\(name) is offered twice; offer each subprotocol once (RFC 6455 §4.1).")
        case .subprotocolsGivenTwice:
            self = .invalid("/subprotocols", "Offer subprotocols here or in a header, not in both.")
        case .malformedAuthority: self = .invalid("/url", "The host or the port of url is invalid.")
        case .malformedTarget: self = .invalid("/url", "The path of url must start with / and be percent-encoded.")
        case .malformedOffer: self = .invalid("/compress", "These compression parameters cannot be offered.")
        }
    }

    /// The problem for a failed operation on a task.
    init(_ failure: TaskFailure) {
        switch failure {
        case .cancelled: self.init(409, "cancelled", "The connection was closed meanwhile.")
        case .timedOut: self = Self(504, "timed-out", "The operation timed out; try a longer timeout.").retryable()
        case .directionClosed:
            self.init(409, "direction-closed", "This direction of the connection is already closed.")
        case .usageError(let text): self.init(409, "state-conflict", text)
        case .ended, .closed: self.init(410, "closed", "The connection is closed.")
        case .connectionLost(let fault): self.init(410, "connection-lost", fault.description)
        case .cannotConnect(let fault):
            self = Self(fault.isLocalResourceFailure ? 503 : 502, "cannot-connect", fault.description).retryable()
        case .secureConnectionFailed(let failure): self.init(502, "tls-failed", "TLS failed: \(failure)")
        case .handshakeRefused(let status):
            self.init(502, "handshake-refused", "The server answered the opening handshake with status \(status).")
        case .protocolViolation(_, let text):
            self.init(502, "protocol-violation", "The peer broke the protocol: \(text)")
        case .messageTooLong(let limit):
            self.init(502, "message-too-long", "A message is longer than the limit of \(limit) bytes.")
        case .peerUnresponsive: self.init(504, "peer-unresponsive", "The peer stopped answering.")
        }
    }

    static let internalError = ControlProblem(500, "internal-fault", "Internal error. See the gateway's log.")
    static let draining = ControlProblem(503, "draining", "The gateway is draining; use another one.")
        .retryable(after: 30)
    static func bodyTooLarge(_ limit: Int) -> ControlProblem {
        var problem = ControlProblem(
            413, "body-too-large", "The body is longer than \(limit) bytes; send less at a time.")
        problem.closesConnection = true
        return problem
    }
    static func unknownConnection(_ name: String) -> ControlProblem {
        ControlProblem(404, "unknown-connection", "There is no connection \(name.prefix(64)).")
    }

    // MARK: Refused configurations

    /// Most configuration errors in one problem.
    private static let errorLimit = 100

    init(_ refusal: ConfigurationRefusal) {
        switch refusal {
        case .problems(let problems, let entry): self = Self.invalidConfiguration(problems, entry: entry)
        case .unknown(let section, let name):
            self.init(404, "unknown-\(section.singularName)", "There is no \(section.singularName) \(name.prefix(64)).")
        case .taken(let section, let name):
            self = Self(
                409, "name-taken", "There is a \(section.singularName) \(name.prefix(64)) already; choose another name."
            )
            .at(pointer: "/name")
        case .cannotRun(let error):
            self.init(409, "cannot-run", "The change was not applied, as it cannot run: \(error.description)")
        case .preconditionFailed: self = .preconditionFailed
        case .noFile: self.init(409, "no-file", "The gateway was started without a configuration file to reload.")
        case .unreadable(let text): self.init(409, "unreadable-file", text)
        }
    }

    static let preconditionFailed = ControlProblem(
        412, "changed-meanwhile",
        "If-Match or If-None-Match does not hold for the current state; get it again and change that.")

    private static func invalidConfiguration(_ problems: ConfigurationProblems, entry: ConfigurationKeyPath?)
        -> ControlProblem
    {
        let prefix = entry?.steps ?? []
        // Without an error in the changed entry, the conflict is with the rest of the configuration.
        let isOwn = problems.all.contains { entry != nil && $0.keyPath.steps.starts(with: prefix) }
        var problem =
            isOwn
            ? ControlProblem(422, "invalid-configuration", problems.all.first?.explanation ?? "")
            : ControlProblem(
                409, "conflicts-with-configuration",
                "The change conflicts with the rest of the configuration: \(problems.all[0].located)")
        if problems.all.count > 1 { problem.detail += " (and \(problems.all.count - 1) more)" }
        problem.errors = problems.all.prefix(self.errorLimit).map { error in
            guard entry != nil, error.keyPath.steps.starts(with: prefix) else {
                return ProblemField(detail: error.located)
            }
            return ProblemField(
                pointer: error.keyPath.pointer(droppingFirst: prefix.count), detail: error.explanation)
        }
        return problem
    }
}

extension ConfigurationProblem {
    /// Without the key path.
    fileprivate var explanation: String {
        let text = "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : "\(text); \(self.remedy)"
    }

    /// With the key path in the whole configuration.
    fileprivate var located: String {
        self.keyPath.steps.isEmpty ? self.explanation : "\(self.keyPath): \(self.explanation)"
    }
}

extension ConfigurationKeyPath {
    /// A JSON pointer (RFC 6901).
    func pointer(droppingFirst count: Int = 0) -> String {
        self.steps.dropFirst(count).map { step in
            switch step {
            case .key(let name): JSONPointer.step(name)
            case .index(let index): "/\(index)"
            }
        }.joined()
    }
}
