/// A server's no to an opening handshake: an HTTP response other than 101, after which the connection is closed.
public struct HandshakeRefusal: Error, Equatable, Sendable {
    /// 400 to 599.
    public let status: Int
    /// One line for a person: what is wrong and what to do about it.
    public let explanation: String
    /// Fields beyond those that every refusal has.
    public let fields: [HTTPField]

    public init(status: Int, explanation: String, fields: [HTTPField] = []) {
        self.status = status
        self.explanation = explanation
        self.fields = fields
    }

    /// The refusal of a head that could not be read: 431 beyond a limit, else 400.
    public init(_ violation: HeadViolation) {
        self.init(status: violation.status, explanation: violation.explanation)
    }

    /// The whole response, body included: the explanation as plain text. The connection ends behind it.
    ///
    /// Fields that are not well-formed are left out, and control characters in the explanation become spaces: a refusal
    /// must never fail.
    public func rendered() -> [UInt8] {
        let line = self.explanation.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }
        let body = Array(String(String.UnicodeScalarView(line)).utf8) + [0x0A]
        // Whoever sends Upgrade says so in Connection: RFC 9110 §7.8.
        let namesUpgrade = self.fields.contains { $0.name.matchesIgnoringCase("Upgrade") }
        var head = Array("HTTP/1.1 \(self.status) \(ReasonPhrase.of(self.status))\r\n".utf8)
        for field in self.fields where field.isWellFormed { field.append(to: &head) }
        HTTPField("Content-Type", "text/plain; charset=utf-8").append(to: &head)
        HTTPField("Content-Length", String(body.count)).append(to: &head)
        HTTPField("Connection", namesUpgrade ? "close, Upgrade" : "close").append(to: &head)
        return head + Array("\r\n".utf8) + body
    }
}
