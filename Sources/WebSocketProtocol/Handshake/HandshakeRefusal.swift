/// A server's refusal of an opening request, with what is wrong and what to do.
public struct HandshakeRefusal: Error, Equatable, Sendable {
    /// 400 to 599.
    public let status: Int
    /// One sentence for a person; the body of the answer.
    public let explanation: String
    /// Fields that go with the status.
    public let fields: [HTTPField]

    public init(status: Int, explanation: String, fields: [HTTPField] = []) {
        self.status = status
        self.explanation = explanation
        self.fields = fields
    }

    /// The answer as it goes out; the connection ends behind it.
    public func rendered() -> [UInt8] {
        let body = Array((self.explanation + "\n").utf8)
        var head = Array("HTTP/1.1 \(self.status) \(StatusPhrase.of(self.status))\r\n".utf8)
        let own = [
            HTTPField("Content-Type", "text/plain; charset=utf-8"), HTTPField("Content-Length", String(body.count)),
            HTTPField("Connection", "close"),
        ]
        for field in self.fields + own where field.isWellFormed { field.append(to: &head) }
        return head + Array("\r\n".utf8) + body
    }

    public static let noRoute = HandshakeRefusal(
        status: 404, explanation: "Nothing answers at this host and path; check the URL.")
    public static let malformedTarget = HandshakeRefusal(
        status: 400, explanation: "The request target is malformed; check its percent signs.")
    public static let originRefused = HandshakeRefusal(
        status: 403, explanation: "Pages of this origin may not connect here; its operator can allow them.")
    public static let goingAway = HandshakeRefusal(
        status: 503, explanation: "This server is shutting down; try another or try again later.")
}

enum StatusPhrase {
    static func of(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: status < 500 ? "Refused" : "Failed"
        }
    }
}
