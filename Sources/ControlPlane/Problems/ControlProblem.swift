import ControlAPI
import FoundationEssentials
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Why a request is answered with a problem (RFC 9457).
package struct ControlProblem: Error {
    package var status: Int
    /// Stable; for programs.
    package var code: String
    /// What is wrong and what to do about it.
    package var detail: String
    package var isRetryable = false
    package var errors: [ProblemField] = []
    /// Seconds.
    package var retryAfter: Int?
    /// `WWW-Authenticate`.
    package var challenge: String?
    /// Whether what is left of the request is not worth waiting for.
    package var endsConnection = false
    /// Methods that the resource has.
    package var allowed: [String] = []
    /// Bytes of the content of which a range was asked for that is none.
    package var contentLength: Int64?
    /// Whether the audit log has a line of it already.
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

    /// What is wrong with a part of the body that stands at `pointer`.
    package func inside(_ pointer: String) -> ControlProblem {
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

    /// The body of the answer: the document, and a line feed, as terminals and tools that read lines expect it.
    package var body: ByteBuffer { ByteBuffer(bytes: self.json + [UInt8(ascii: "\n")]) }

    /// The status in words (RFC 9110 §15).
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
        var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        if let seconds = self.retryAfter { headers[.retryAfter] = "\(seconds)" }
        if let challenge = self.challenge { headers[.wwwAuthenticate] = challenge }
        // RFC 9110 §15.5.17.
        if let length = self.contentLength { headers[.contentRange] = "bytes */\(length)" }
        if !self.allowed.isEmpty { headers[.allow] = self.allowed.joined(separator: ", ") }
        return Response(
            status: HTTPResponse.Status(code: self.status), headers: headers,
            body: ResponseBody(byteBuffer: self.body))
    }
}
