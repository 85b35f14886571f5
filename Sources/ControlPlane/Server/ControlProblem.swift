import ControlAPI
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import NIOCore
import WireText

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
    /// A connection's closing record, as JSON: the model is too large for errors.
    package var connection: [UInt8]?

    package init(_ status: Int, _ code: String, _ detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    /// The same problem with changes.
    package func with(_ change: (inout ControlProblem) -> Void) -> ControlProblem {
        var problem = self
        change(&problem)
        return problem
    }

    package func retryable(after seconds: Int? = nil) -> ControlProblem {
        self.with { ($0.isRetryable, $0.retryAfter) = (true, seconds) }
    }

    /// After which the connection is closed, as the rest of the request is not read.
    package var closing: ControlProblem { self.with { $0.closesConnection = true } }

    package func at(pointer: String) -> ControlProblem {
        self.with { $0.errors.append(ProblemField { ($0.pointer, $0.detail) = (pointer, self.detail) }) }
    }

    package func at(parameter: String) -> ControlProblem {
        self.with { $0.errors.append(ProblemField { ($0.parameter, $0.detail) = (parameter, self.detail) }) }
    }

    /// The same problem, whose pointers are relative to `pointer`.
    package func nested(under pointer: String) -> ControlProblem {
        self.with { problem in
            for index in problem.errors.indices {
                problem.errors[index].pointer = problem.errors[index].pointer.map { pointer + $0 }
            }
        }
    }

    package var json: [UInt8] {
        JSONBody.encode(
            Problem {
                $0.title = ReasonPhrase.of(self.status)
                $0.status = self.status
                $0.code = self.code
                $0.detail = self.detail
                $0.retryable = self.isRetryable
                $0.errors = self.errors.isEmpty ? nil : self.errors
                $0.connection = self.connection.flatMap { try? JSONDecoder().decode(Connection.self, from: Data($0)) }
            })
    }

    /// The document followed by a line feed, which terminals and line-based tools expect.
    package var body: ByteBuffer { ByteBuffer(bytes: self.json + [UInt8(ascii: "\n")]) }

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

/// Problems that several operations respond with.
extension ControlProblem {
    static let malformedJSON = ControlProblem(400, "malformed-json", "The body is not valid JSON in UTF-8 (RFC 8259).")

    /// 400 for a query parameter with an invalid value.
    static func invalid(parameter: String, _ detail: String) -> ControlProblem {
        ControlProblem(400, "invalid-parameter", detail).at(parameter: parameter)
    }

    /// 422 for a member with an invalid value.
    package static func invalid(_ pointer: String, _ detail: String) -> ControlProblem {
        ControlProblem(422, "invalid-value", detail).at(pointer: pointer)
    }

    static let internalError = ControlProblem(500, "internal-error", "Internal error. See the gateway's log.")
    static let draining = ControlProblem(503, "draining", "The gateway is draining; use another one.")
        .retryable(after: 30)
    static func bodyTooLarge(_ limit: Int) -> ControlProblem {
        ControlProblem(413, "body-too-large", "The body is longer than \(limit) bytes; send less at a time.").closing
    }
    static func unknownConnection(_ name: String) -> ControlProblem {
        ControlProblem(404, "unknown-connection", "There is no connection \(name.prefix(64)).")
    }

    static func targetNotAllowed(_ target: String) -> ControlProblem {
        ControlProblem(
            403, "target-not-allowed", "\(target) is not an allowed target; control.targets lists the allowed ones.")
    }
}
