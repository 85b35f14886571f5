import HTTPTransport
import SessionTasks
import StreamTransport
import Testing
import WireText

@Suite("A request as it is sent, RFC 9112 §3, §6")
struct RequestPlanTests {
    private func request(
        _ method: String = "GET", _ fields: [(String, String)] = [], body: RequestBody = .none
    ) -> ExchangeRequest {
        let head = RequestHead(method: method, target: "/x", fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
        var request = ExchangeRequest(ServerEndpoint(.http, host: "a.test"), head: head)
        request.body = body
        return request
    }

    private final class Nothing: BodySource {
        func read(into room: inout MutableRawSpan) -> BodyRead { .end }
        func rewind() -> Bool { true }
    }

    @Test func hostIsTheFirstField() throws {
        #expect(try RequestPlan(self.request()).head.fields.all == [FieldLine("Host", "a.test")])
        var request = self.request()
        request.origin = ServerEndpoint(.http, host: "::1", port: 8080)
        #expect(try RequestPlan(request).head.fields["host"] == "[::1]:8080")
        #expect(try RequestPlan(self.request("GET", [("host", "b.test")])).head.fields["host"] == "b.test")
    }

    @Test func requestHasTheLengthOfItsBody() throws {
        #expect(try RequestPlan(self.request()).framing == .none)
        #expect(try RequestPlan(self.request("POST")).head.fields["content-length"] == "0")
        let bytes = try RequestPlan(self.request("PUT", body: .bytes([1, 2, 3])))
        #expect(bytes.framing == .length(3))
        #expect(bytes.head.fields["content-length"] == "3")
        let stream = try RequestPlan(self.request("POST", body: .source(Nothing(), length: nil)))
        #expect(stream.framing == .chunked)
        #expect(stream.head.fields["transfer-encoding"] == "chunked")
        let said = try RequestPlan(
            self.request("POST", [("Content-Length", "9")], body: .source(Nothing(), length: nil)))
        #expect(said.framing == .length(9))
        #expect(said.head.fields.filter { $0.isNamed("content-length") }.count == 1)
    }

    @Test(arguments: [
        ("GE T", [], RequestError.method), ("", [], .method), ("GET", [("A b", "c")], .fieldName),
        ("GET", [("A", "b\r\nC: d")], .fieldValue), ("GET", [("A", "b\u{0}")], .fieldValue),
        ("GET", [("", "b")], .fieldName), ("POST", [("Content-Length", "4")], .bodyLength),
        ("POST", [("Content-Length", "x")], .bodyLength), ("POST", [("Transfer-Encoding", "gzip")], .bodyLength),
        ("POST", [("Transfer-Encoding", "chunked"), ("Content-Length", "3")], .bodyLength),
        ("POST", [("Content-Length", "3"), ("Content-Length", "3")], .bodyLength),
    ])
    func ambiguousRequestIsRefused(_ method: String, _ fields: [(String, String)], _ fault: RequestError) {
        #expect(throws: fault) { try RequestPlan(self.request(method, fields, body: .bytes([1, 2, 3]))) }
    }

    /// RFC 9110 §11.7.2.
    @Test func serverDoesNotGetTheCredentialsOfAProxy() throws {
        var request = self.request("GET", [("proxy-authorization", "Basic eA==")])
        #expect(try RequestPlan(request).head.fields["Proxy-Authorization"] == nil)
        request.proxy = ProxyServer(.host("proxy.test", port: 80), .connect)
        #expect(try RequestPlan(request).head.fields["Proxy-Authorization"] == nil)
        request.proxy?.method = .forwarding
        #expect(try RequestPlan(request).head.fields["Proxy-Authorization"] == "Basic eA==")
        request.proxy?.authorization = "Basic eQ=="
        #expect(try RequestPlan(request).head.fields.values("Proxy-Authorization") == ["Basic eQ=="])
    }

    @Test(arguments: ["", "/a b", "/a\r\nX: y", "/\u{7F}"])
    func textThatIsNoTargetIsRefused(_ target: String) {
        var request = self.request()
        request.head.target = target
        #expect(throws: RequestError.target) { try RequestPlan(request) }
    }

    @Test func originWithoutHostPortOrSecurityIsRefused() {
        for origin in [
            ServerEndpoint(.http, host: ""), ServerEndpoint(.http, host: "a", port: 0),
            ServerEndpoint(.https, host: "a"),
        ] {
            var request = self.request()
            request.origin = origin
            #expect(throws: RequestError.origin) { try RequestPlan(request) }
        }
    }

    @Test func expectationIsSentOnlyWithABody() throws {
        var request = self.request("POST", body: .bytes([1]))
        request.continueTimeout = .seconds(3)
        let plan = try RequestPlan(request)
        #expect(plan.continueTimeout == .seconds(3))
        #expect(plan.head.fields["expect"] == "100-continue")
        request.body = .bytes([])
        #expect(try RequestPlan(request).continueTimeout == nil)
        let own = try RequestPlan(self.request("POST", [("Expect", "100-Continue")], body: .bytes([1])))
        #expect(own.continueTimeout == RequestPlan.continueTimeout)
        #expect(own.head.fields.filter { $0.isNamed("expect") }.count == 1)
    }
}
