import Testing
import WebSocketProtocol

@Suite("Refusing an opening handshake")
struct HandshakeRefusalTests {
    static let all: [HandshakeRefusal] = [
        .malformed("x"), .malformedTarget, .originRefused, .noRoute, .wrongMethod, .upgradeRequired("x"), .goingAway,
        .tooManyRequests(retryAfter: 3), .unavailable(retryAfter: 5), .wrongHTTPVersion,
        HandshakeRefusal(.tooLong(limit: 9)), HandshakeRefusal(.foldedField),
    ]

    @Test(arguments: all)
    func refusalIsAWholeResponseThatEndsTheConnection(_ refusal: HandshakeRefusal) throws {
        let bytes = refusal.rendered()
        let outcome = HeadFeeding.response([bytes])
        let head = try #require(outcome.head)
        let body = Array(bytes[outcome.consumed...])
        #expect(head.status == refusal.status)
        #expect(!head.reason.isEmpty)
        #expect(head.fields["Content-Type"] == "text/plain; charset=utf-8")
        #expect(head.fields["Content-Length"] == String(body.count))
        #expect(head.fields.list("Connection", contains: "close"))
        #expect(body == Array((refusal.explanation + "\n").utf8))
    }

    @Test func refusalHasTheStatusOfItsReason() {
        #expect(Self.all.map(\.status) == [400, 400, 403, 404, 405, 426, 503, 429, 503, 505, 431, 400])
    }

    @Test func upgradeFieldIsNamedInConnection() {
        let head = HeadFeeding.response([HandshakeRefusal.upgradeRequired("x").rendered()]).head
        #expect(head?.fields.list("Connection", contains: "upgrade") == true)
        #expect(HandshakeRefusal.tooManyRequests(retryAfter: 3).fields == [HTTPField("Retry-After", "3")])
    }

    @Test func refusalReasonIsOneLine() throws {
        let refusal = HandshakeRefusal(
            status: 400, explanation: "a\r\nb\u{0}c",
            fields: [HTTPField("X", "a\r\nSet-Cookie: b"), HTTPField("Y", "z")])
        let bytes = refusal.rendered()
        let outcome = HeadFeeding.response([bytes])
        let head = try #require(outcome.head)
        #expect(head.fields["Set-Cookie"] == nil)
        #expect(head.fields["X"] == nil)
        #expect(head.fields["Y"] == "z")
        #expect(Array(bytes[outcome.consumed...]) == Array("a  b c\n".utf8))
    }
}
