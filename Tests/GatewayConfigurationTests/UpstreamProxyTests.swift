import GatewayConfiguration
import GatewayTestSupport
import Testing

@Suite("Proxies of upstreams")
struct UpstreamProxyTests {
    private static func text(_ proxy: String, _ endpoint: String = "tcp://far.example:7") -> String {
        """
        listeners: [{name: raw, listen: "tcp://127.0.0.1:0", route: raw}]
        routes: [{name: raw, target: far}]
        upstreams: [{name: far, endpoints: ["\(endpoint)"], proxy: \(proxy)}]
        """
    }

    private func proxy(_ text: String) throws -> UpstreamProxy? {
        try ConfigurationSamples.configuration(Self.text(text)).upstreams.first?.proxy
    }

    @Test(arguments: [
        ("http://Proxy.example", "http://proxy.example:80"), ("https://proxy.example", "https://proxy.example:443"),
        ("http://192.0.2.1:3128/", "http://192.0.2.1:3128"), ("socks4://proxy.example", "socks4://proxy.example:1080"),
        ("socks4a://proxy.example", "socks4a://proxy.example:1080"), ("socks5://[::1]:9", "socks5://[::1]:9"),
        ("socks5h://proxy.example", "socks5h://proxy.example:1080"),
    ])
    func urlIsRead(_ text: String, _ normal: String) throws {
        let proxy = try #require(try self.proxy("\"\(text)\""))
        #expect(proxy.url.description == normal && proxy.user == nil && proxy.password == nil)
    }

    @Test func mappingHasAUserAndAPassword() throws {
        let proxy = try #require(try self.proxy("{url: \"socks5h://p.example\", user: ada, password-file: /p.txt}"))
        #expect(proxy.user == "ada" && proxy.password == .file("/p.txt"))
        #expect(try self.proxy("{url: \"http://p.example\", user: a, password: b}")?.password == .text("b"))
    }

    @Test(arguments: [
        ("ftp://p.example", "expected a URL that begins with http, https, socks4, socks4a, socks5 or socks5h"),
        ("http://ada:secret@p.example", "expected a proxy's URL without a user name and password"),
        ("http://p.example/path", "expected nothing after the address of the proxy"),
        ("http://p.example:0", "expected a port from 1 to 65535"), ("http://", "expected a host name"),
        ("http+unix:///p", "expected a URL that begins with http"),
        ("{user: ada}", "upstreams[0].proxy.url"), ("{url: \"http://p\", password: b}", "expected a user beside"),
        ("{url: \"http://p\", usr: b}", "did you mean user?"), ("[]", "expected a mapping"),
    ])
    func problemNamesTheKey(_ proxy: String, _ problem: String) {
        let written = proxy.hasPrefix("{") || proxy.hasPrefix("[") ? proxy : "\"\(proxy)\""
        let problems = ConfigurationSamples.problems(Self.text(written))
        #expect(problems.contains { $0.contains(problem) && $0.contains("proxy") }, "\(problems)")
        #expect(!problems.contains { $0.contains("secret") && !$0.contains("found") })
    }

    @Test func unixSocketHasNoProxy() {
        let problems = ConfigurationSamples.problems(Self.text("\"http://p.example\"", "unix:///run/far.sock"))
        #expect(problems.contains { $0.contains("upstreams[0].proxy: expected no proxy") })
    }

    @Test func bridgeHasTheProxyOfItsCommandLine() throws {
        var request = BridgeRequest(listen: "tcp://127.0.0.1:1", target: "wss://far.example/")
        request.proxy = UpstreamProxy(try ProxyURL("socks5h://p.example"), user: "ada", password: .text("secret"))
        let configuration = try request.read().configuration
        #expect(configuration.upstreams.first?.proxy == request.proxy)
        request.target = "echo"
        request.proxySource = "all_proxy"
        #expect(throws: ConfigurationProblems.self) { try request.read() }
    }
}
