/// How the end of a response's content is told (RFC 9112 §6.3).
package enum ResponseFraming: Sendable, Hashable {
    /// There is no content, whatever the fields say.
    case none
    case length(Int64)
    case chunked
    /// The end of the connection is the end of the content.
    case untilClose

    /// - Parameter method: of the request.
    /// - Throws: where two readers could disagree over the length.
    package static func of(_ head: ResponseHead, method: String) throws(ResponseViolation) -> ResponseFraming {
        let codings = head.fields.filter { $0.isNamed("transfer-encoding") }
        let lengths = head.fields.filter { $0.isNamed("content-length") }
        if !codings.isEmpty, !lengths.isEmpty { throw .twoFramings }
        guard codings.isEmpty else { return try self.coded(codings, head, method) }
        guard let first = lengths.first?.value else { return self.hasNoContent(head, method) ? .none : .untilClose }
        guard lengths.allSatisfy({ $0.value == first }) else { throw .twoFramings }
        guard let length = ASCIIText.number(first) else { throw .contentLength }
        return self.hasNoContent(head, method) ? .none : .length(length)
    }

    private static func coded(
        _ codings: [HeaderField], _ head: ResponseHead, _ method: String
    ) throws(ResponseViolation) -> ResponseFraming {
        guard head.minorVersion > 0, codings.count == 1, ASCIIText.equal(codings[0].value, small: "chunked") else {
            throw .transferCoding
        }
        return self.hasNoContent(head, method) ? .none : .chunked
    }

    private static func hasNoContent(_ head: ResponseHead, _ method: String) -> Bool {
        method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304
    }
}
