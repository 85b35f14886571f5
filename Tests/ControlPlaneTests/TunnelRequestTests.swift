import ControlAPI
import ControlPlane
import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Requests to open tunnels")
struct TunnelRequestTests {
    private func request(_ more: String) throws -> ClientTunnelRequest {
        let body = #"{"downstream":{"url":"tcp://127.0.0.1:1"},"upstream":{"url":"ws://127.0.0.1:2/x"}\#(more)}"#
        return try TunnelRequestParser(JSONBody.decode(TunnelRequest.self, from: Array(body.utf8))).parse()
    }

    @Test func bothSidesAreRead() throws {
        let request = try self.request("")
        #expect(request[.downstream].url.description == "tcp://127.0.0.1:1")
        #expect(request[.upstream].url.description == "ws://127.0.0.1:2/x")
        #expect(request.settings == TunnelSettings())
    }

    @Test func settingsAreRead() throws {
        let settings = try self.request(
            #","framing":"length-prefixed","halfClose":"hold","idleTimeoutMs":0,"maximumAgeMs":60000"#
        ).settings
        #expect(settings.framing == .lengthPrefixed)
        #expect(settings.halfClose == .hold)
        #expect(settings.idleTimeout == nil)
        #expect(settings.maximumAge == .seconds(60))
    }

    @Test(arguments: [
        (#","framing":"x""#, "/framing"), (#","halfClose":"x""#, "/halfClose"),
        (#","halfClose":"signal","framing":"length-prefixed""#, "/halfClose"),
        (#","idleTimeoutMs":999"#, "/idleTimeoutMs"),
        (#","idleTimeoutMs":-1"#, "/idleTimeoutMs"), (#","maximumAgeMs":1e300"#, "/maximumAgeMs"),
        (#","url":"tcp://127.0.0.1:1""#, "/url"),
    ])
    func invalidTunnelRequestHasItsPointer(_ more: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) { try self.request(more) }
        #expect(problem?.status == 422)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test(arguments: [
        (#"{"downstream":{"url":"x"},"upstream":{"url":"tcp://127.0.0.1:1"}}"#, "/downstream/url"),
        (#"{"downstream":{"url":"tcp://h:1"},"upstream":{"url":"tcp://h:1","compress":true}}"#, "/upstream/compress"),
        (#"{"downstream":{"url":"tcp://h:1"},"upstream":{"url":"tls://h:1","tls":{"n":1}}}"#, "/upstream/tls/n"),
        (#"{"downstream":{"url":"tcp://h:1"}}"#, "/upstream"), (#"{"upstream":{"url":"tcp://h:1"}}"#, "/downstream"),
        (#"{"downstream":{},"upstream":{"url":"tcp://h:1"}}"#, "/downstream/url"),
        (#"{"downstream":"tcp://h:1","upstream":{"url":"tcp://h:1"}}"#, "/downstream"),
    ])
    func errorOfOneSideHasThatSidesPointer(_ body: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) {
            try TunnelRequestParser(JSONBody.decode(TunnelRequest.self, from: Array(body.utf8))).parse()
        }
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func aBodyIsKnownByItsMembers() {
        let sides: Set<String> = ["downstream", "upstream"]
        #expect(JSONBody.hasMember(of: sides, in: Array(#"{"upstream":1}"#.utf8)))
        for body in [#"{"url":{"upstream":1}}"#, "[]", "", "{", #""upstream""#] {
            #expect(!JSONBody.hasMember(of: sides, in: Array(body.utf8)))
        }
    }
}
