import Foundation
import Testing
import URLLoading

@Suite("Unsupported features fail with an error", .loading, .timeLimit(.minutes(20)))
struct RefusedLoadingTests {
    /// A redirect to another scheme does not bypass the proxy of that scheme.
    @Test(.choosesItsConnections) func redirectUsesTheProxyOfItsScheme() async throws {
        let secure = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let server = try await WebServer(["/": .redirect(to: secure.url().absoluteString)])
        let session = URLSession.test(DataRecorder(.trusting)) { $0.connectionProxyDictionary = ["HTTPSEnable": 1] }
        let error = try await session.load(server.url()).error as? URLError
        #expect(error?.code == .unsupportedURL && error?.failingURL == secure.url() && secure.connections == 0)
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        (tls_protocol_version_t.TLSv12, tls_protocol_version_t.TLSv11), (.TLSv10, .TLSv10), (.TLSv13, .TLSv12),
        (.DTLSv12, .TLSv13), (.TLSv12, .DTLSv12),
    ])
    func impossibleTLSVersionRangeIsRefused(_ lowest: tls_protocol_version_t, _ highest: tls_protocol_version_t)
        async throws
    {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let session = URLSession.test(DataRecorder(.trusting)) {
            $0.tlsMinimumSupportedProtocolVersion = lowest
            $0.tlsMaximumSupportedProtocolVersion = highest
        }
        let error = try await session.load(server.url()).error as? URLError
        #expect(error?.code == .secureConnectionFailed && server.connections == 0)
        #expect(error?.localizedDescription.contains("tlsMaximumSupportedProtocolVersion") == true)
        let stream = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        stream.startSecureConnection()
        stream.resume()
        let refused = await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 60)
        }
        #expect(refused?.code == .secureConnectionFailed)
        session.invalidateAndCancel()
    }

    @Test func unsupportedTLSVersionIsRefused() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let session = URLSession.test(DataRecorder(.trusting)) { $0.tlsMinimumSupportedProtocolVersion = .TLSv10 }
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
    }

    @Test func basicFollowsUnansweredSchemes() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("in")
                : .text(
                    "no", ["WWW-Authenticate: Negotiate, NTLM", "WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        server.on("/bearer", .text("no", ["WWW-Authenticate: Bearer realm=\"r\""], status: 401))
        let recorder = DataRecorder(.credential("user", "passwd"))
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url()).text == "in")
        let methods = ["session challenge Negotiate", "session challenge NTLM", "challenge HTTPBasic"]
        #expect(recorder.log.names.filter { $0.contains("challenge") } == methods)
        #expect(try await session.load(server.url("/bearer")).status == 401)
        session.invalidateAndCancel()
    }
}

@Suite("Proxies that the environment names")
struct ProxyEnvironmentTests {
    private func variable(
        _ variables: [String: String], _ scheme: String = "http", _ host: String = "example.com", _ port: Int? = nil
    ) -> String? {
        ProxyEnvironment { variables[$0] }.variable(scheme: scheme, host: host, port: port)
    }

    private static let proxy = "http://proxy:3128"

    @Test func variableAppliesToItsScheme() {
        #expect(self.variable([:]) == nil && self.variable(["http_proxy": ""]) == nil)
        #expect(self.variable(["http_proxy": Self.proxy]) == "http_proxy")
        #expect(self.variable(["HTTP_PROXY": Self.proxy]) == "HTTP_PROXY")
        #expect(self.variable(["http_proxy": Self.proxy], "ws") == "http_proxy")
        #expect(self.variable(["http_proxy": Self.proxy], "https") == nil)
        for name in ["https_proxy", "HTTPS_PROXY"] {
            #expect(
                self.variable([name: Self.proxy], "https") == name && self.variable([name: Self.proxy], "wss") == name)
            #expect(self.variable([name: Self.proxy]) == nil)
        }
        for name in ["all_proxy", "ALL_PROXY"] {
            for scheme in ["http", "https", "ws", "wss"] { #expect(self.variable([name: Self.proxy], scheme) == name) }
        }
        // CGI programs get this variable from a request's Proxy field (RFC 3875 §4.1.18).
        #expect(self.variable(["HTTP_PROXY": Self.proxy, "REQUEST_METHOD": "GET"]) == nil)
        // The protocol of a stream task is neither HTTP nor HTTPS.
        #expect(self.variable(["all_proxy": Self.proxy], "stream") == "all_proxy")
    }

    @Test(arguments: [
        ("*", true), ("example.com", true), (".example.com", true), ("com", true), ("other.com, example.com", true),
        ("EXAMPLE.COM", true), ("example.com:80", true), ("other.com example.com", true), ("", false), (",", false),
        ("ample.com", false), ("www.example.com", false), ("example.com:81", false), ("10.0.0.0/8", false),
    ])
    func exceptionNeedsNoProxy(_ exceptions: String, _ isException: Bool) {
        for name in ["no_proxy", "NO_PROXY"] {
            let variables = ["http_proxy": Self.proxy, name: exceptions]
            for port in [nil, 80] {
                #expect((self.variable(variables, "http", "example.com", port) == nil) == isException)
            }
        }
    }

    @Test func exceptionCountsTheSchemesPort() {
        let variables = ["all_proxy": Self.proxy, "no_proxy": "example.com:443"]
        #expect(self.variable(variables, "https") == nil && self.variable(variables, "wss") == nil)
        #expect(self.variable(variables, "http") == "all_proxy")
    }

    @Test(arguments: [
        "localhost", "a.localhost", "127.0.0.1", "127.3.2.1", "::1", "10.0.0.1",
    ])
    func loopbackIsNoException(_ host: String) {
        #expect(self.variable(["http_proxy": Self.proxy], "http", host) == "http_proxy")
        #expect(self.variable(["http_proxy": Self.proxy, "no_proxy": host], "http", host) == nil)
    }
}
