import Testing
import URLLoading

@Suite("Selection of a connection's proxy")
struct ProxySettingsTests {
    // MARK: The proxy's address

    @Test(arguments: [
        ("http://proxy.example:3128", ProxyAddress(.http, "proxy.example", port: 3128)),
        ("proxy.example:3128", ProxyAddress(.http, "proxy.example", port: 3128)),
        ("proxy.example", ProxyAddress(.http, "proxy.example", port: 80)),
        ("HTTP://proxy.example/", ProxyAddress(.http, "proxy.example", port: 80)),
        ("https://proxy.example", ProxyAddress(.https, "proxy.example", port: 443)),
        ("socks5://127.0.0.1", ProxyAddress(.socks5, "127.0.0.1", port: 1080)),
        ("socks5h://[::1]:9050", ProxyAddress(.socks5h, "::1", port: 9050)),
        ("socks://proxy.example", ProxyAddress(.socks4, "proxy.example", port: 1080)),
        ("socks4a://proxy.example", ProxyAddress(.socks4a, "proxy.example", port: 1080)),
        ("http://ada@proxy.example", ProxyAddress(.http, "proxy.example", port: 80, user: "ada")),
        (
            "http://a%40b:p%3Aw%25@proxy.example:1",
            ProxyAddress(.http, "proxy.example", port: 1, user: "a@b", password: "p:w%")
        ),
        ("http://ada:@proxy.example", ProxyAddress(.http, "proxy.example", port: 80, user: "ada", password: "")),
    ])
    func addressHasItsParts(_ text: String, _ expected: ProxyAddress) {
        #expect(ProxyAddress(text) == expected)
    }

    @Test(arguments: [
        "", "http://", "ftp://proxy.example", "http://proxy.example:0", "http://proxy.example:65536", "http://p:x",
        "http://[::1", "http://[::1]x", "http://a b", "http://p:+80", "http://p:-1", "http://a%zz@proxy.example",
        "://proxy", "http://p\u{7f}",
    ])
    func otherTextIsNoAddress(_ text: String) {
        #expect(ProxyAddress(text) == nil)
    }

    // MARK: The dictionary

    private static var all: [AnyHashable: Any] {
        [
            kCFNetworkProxiesHTTPEnable: 1, kCFNetworkProxiesHTTPProxy: "web.example", kCFNetworkProxiesHTTPPort: 3128,
            kCFNetworkProxiesHTTPSEnable: true, kCFNetworkProxiesHTTPSProxy: "secure.example",
            kCFNetworkProxiesHTTPSPort: 3129, kCFNetworkProxiesSOCKSEnable: 1,
            kCFNetworkProxiesSOCKSProxy: "socks.example", kCFNetworkProxiesSOCKSPort: 1080,
            kCFProxyUsernameKey: "ada", kCFProxyPasswordKey: "secret",
            kCFNetworkProxiesExceptionsList: ["*.local", "one.example:81"],
            kCFNetworkProxiesExcludeSimpleHostnames: 1,
        ]
    }

    /// Programs write the values as well as the names.
    @Test func keysHaveTheValuesOfCFNetwork() {
        #expect(kCFNetworkProxiesHTTPEnable == "HTTPEnable" && kCFNetworkProxiesHTTPSProxy == "HTTPSProxy")
        #expect(kCFNetworkProxiesSOCKSPort == "SOCKSPort" && kCFNetworkProxiesExceptionsList == "ExceptionsList")
        #expect(kCFNetworkProxiesProxyAutoConfigEnable == "ProxyAutoConfigEnable")
        #expect(kCFNetworkProxiesProxyAutoConfigURLString == "ProxyAutoConfigURLString")
        #expect(kCFNetworkProxiesProxyAutoConfigJavaScript == "ProxyAutoConfigJavaScript")
        #expect(kCFNetworkProxiesProxyAutoDiscoveryEnable == "ProxyAutoDiscoveryEnable")
        #expect(kCFProxyUsernameKey == "kCFProxyUsernameKey" && kCFProxyPasswordKey == "kCFProxyPasswordKey")
        #expect(kCFStreamPropertySOCKSVersion == "kCFStreamPropertySOCKSVersion")
        #expect(kCFStreamSocketSOCKSVersion4 == "kCFStreamSocketSOCKSVersion4")
    }

    @Test(
        arguments: [
            (nil, .socks5h), (kCFStreamSocketSOCKSVersion4, .socks4a), (kCFStreamSocketSOCKSVersion5, .socks5h),
        ] as [(String?, ProxyAddress.Kind)])
    func dictionaryNamesTheVersionOfSOCKS(_ version: String?, _ kind: ProxyAddress.Kind) throws {
        var settings: [AnyHashable: Any] = ["SOCKSEnable": 1, "SOCKSProxy": "socks.example"]
        settings[kCFStreamPropertySOCKSVersion] = version
        let found = try ProxyDictionary(settings).proxy(scheme: "http", host: "a.example", port: nil)
        #expect(found == ProxyAddress(kind, "socks.example", port: 1080))
    }

    @Test(
        arguments: [
            ("http", "a.example", nil, "web.example"), ("ws", "a.example", nil, "web.example"),
            ("https", "a.example", nil, "secure.example"), ("wss", "a.example", nil, "secure.example"),
            ("stream", "a.example", 25, "secure.example"), ("http", "printer", nil, nil), ("http", "a.local", nil, nil),
            ("http", "local", nil, nil), ("http", "one.example", 81, nil), ("http", "one.example", nil, "web.example"),
            ("http", "two.example", 81, "web.example"), ("http", "::1", nil, "web.example"),
        ] as [(String, String, Int?, String?)])
    func dictionaryNamesTheProxyOfAScheme(_ scheme: String, _ host: String, _ port: Int?, _ proxy: String?) throws {
        let found = try ProxyDictionary(Self.all).proxy(scheme: scheme, host: host, port: port)
        #expect(found?.host == proxy && (found == nil || found?.user == "ada" && found?.password == "secret"))
    }

    @Test func socksIsUsedForSchemesWithoutTheirOwnProxy() throws {
        let settings: [AnyHashable: Any] = [
            "HTTPEnable": 1, "HTTPProxy": "web.example", "SOCKSEnable": 1, "SOCKSProxy": "socks.example",
            kCFStreamPropertySOCKSUser: "ada", kCFStreamPropertySOCKSPassword: "secret",
        ]
        let proxies = ProxyDictionary(settings)
        #expect(try proxies.proxy(scheme: "http", host: "a", port: nil)?.kind == .http)
        let socks = ProxyAddress(.socks5h, "socks.example", port: 1080, user: "ada", password: "secret")
        #expect(try proxies.proxy(scheme: "https", host: "a", port: nil) == socks)
        #expect(try proxies.proxy(scheme: "stream", host: "a", port: 7) == socks)
    }

    @Test(
        arguments: [
            (["HTTPEnable": 1], "HTTPProxy"), (["HTTPEnable": 1, "HTTPProxy": "a", "HTTPPort": 70_000], "HTTPPort"),
            (["HTTPEnable": 1, "HTTPProxy": ""], "HTTPProxy"), (["ProxyAutoDiscoveryEnable": 1], "Discovery"),
        ] as [([String: any Sendable], String)])
    func dictionaryThatCannotBeFollowedIsAnError(_ settings: [String: any Sendable], _ word: String) {
        let error = #expect(throws: ProxySettingsError.self) {
            try ProxyDictionary(settings).proxy(scheme: "http", host: "a.example", port: nil)
        }
        #expect(error?.text.contains(word) == true)
    }

    @Test(arguments: ["2001:db8::1", "[2001:db8::1]"])
    func addressInTheDictionaryNeedsNoBrackets(_ text: String) throws {
        let proxies = ProxyDictionary(["HTTPSEnable": 1, "HTTPSProxy": text])
        let expected = ProxyAddress(.http, "2001:db8::1", port: 443)
        #expect(try proxies.proxy(scheme: "https", host: "a.example", port: nil) == expected)
    }

    @Test func emptyDictionaryMeansDirectConnections() throws {
        #expect(try ProxyDictionary([:]).proxy(scheme: "http", host: "a.example", port: nil) == nil)
        #expect(try ProxyDictionary(["HTTPEnable": 0]).proxy(scheme: "http", host: "a.example", port: nil) == nil)
    }

    @Test(arguments: [
        ("192.168.*", "192.168.7.9", true), ("192.168.*", "192.169.7.9", false), ("10.*.1.2", "10.7.1.2", true),
        ("*.1.2", "10.7.1.2", true), ("*.local", "a.b.local", true),
        ("*.local", "local", true), ("build-*.example", "build-7.example", true),
        ("build-*.example", "x.build-7.example", false), ("*corp*", "my.corporation", true), ("a.*", "A.EXAMPLE", true),
        ("**", "a", true), ("192.168.*:8080", "192.168.7.9", false), ("192.168.*:80", "192.168.7.9", true),
        ("A.Example.", "a.example", true), ("a.example", "x.a.example.", true), ("2001:DB8:0::1", "2001:db8::1", true),
    ])
    func entryExceptsHosts(_ entry: String, _ host: String, _ isExcepted: Bool) {
        let proxies = ProxyDictionary(["ExceptionsList": [entry]])
        #expect(proxies.excepts(scheme: "http", host: host.lowercased(), port: nil) == isExcepted)
    }

    @Test func everyEntryOfALongListCounts() {
        let proxies = ProxyDictionary(["ExceptionsList": (0..<5000).map { "host-\($0).example" }])
        #expect(proxies.excepts(scheme: "http", host: "host-4999.example", port: nil))
        #expect(!proxies.excepts(scheme: "http", host: "host-5000.example", port: nil))
    }

    // MARK: The environment

    @Test(
        arguments: [
            (["http_proxy": "http://p:1"], "http", "a.example", "p"),
            (["http_proxy": "http://p:1"], "ws", "a.example", "p"),
            (["HTTP_PROXY": "http://p:1"], "http", "a.example", "p"),
            (["HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"], "http", "a.example", nil),
            (["HTTP_PROXY": "http://p:1", "REQUEST_METHOD": ""], "http", "a.example", nil),
            (["http_proxy": "http://p:1", "REQUEST_METHOD": "GET"], "http", "a.example", "p"),
            (["HTTPS_PROXY": "http://p:1", "REQUEST_METHOD": "GET"], "https", "a.example", "p"),
            (["http_proxy": "http://p:1", "HTTP_PROXY": "http://q:1"], "http", "a.example", "p"),
            (["http_proxy": "http://p:1"], "https", "a.example", nil),
            (["HTTPS_PROXY": "http://p:1"], "wss", "a.example", "p"),
            (["https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:1"], "https", "a.example", "p"),
            (["all_proxy": "socks5h://p"], "http", "a.example", "p"),
            (["all_proxy": "socks5h://p", "ALL_PROXY": "http://q"], "http", "a.example", "p"),
            (["all_proxy": "socks5h://p"], "stream", "a", "p"), (["ALL_PROXY": "socks5h://p"], "stream", "a", "p"),
            (["https_proxy": "http://p"], "stream", "a", nil),
            (["http_proxy": "", "all_proxy": "http://p"], "http", "a.example", nil),
            (["http_proxy": "", "HTTP_PROXY": "http://p"], "http", "a.example", nil),
            (["http_proxy": "", "all_proxy": "http://p"], "https", "a.example", "p"),
            (["HTTPS_PROXY": "", "all_proxy": "http://p"], "https", "a.example", nil),
            (["all_proxy": "", "ALL_PROXY": "http://p"], "stream", "a.example", nil),
            (["http_proxy": "http://p", "no_proxy": "b.example,.a.example"], "http", "x.a.example", nil),
            (["http_proxy": "http://p", "NO_PROXY": "*"], "http", "a.example", nil),
            (["http_proxy": "http://p", "no_proxy": "", "NO_PROXY": "*"], "http", "a.example", "p"),
            (["http_proxy": "http://p"], "http", "localhost", "p"),
            (["http_proxy": "http://p"], "http", "127.0.0.7", "p"), (["all_proxy": "http://p"], "stream", "::1", "p"),
            (["http_proxy": "http://p", "no_proxy": "localhost,127.0.0.0/8"], "http", "127.0.0.7", nil),
        ] as [([String: String], String, String, String?)])
    func environmentNamesTheProxyOfAScheme(
        _ variables: [String: String], _ scheme: String, _ host: String, _ proxy: String?
    ) throws {
        let environment = ProxyEnvironment { variables[$0] }
        #expect(try environment.proxy(scheme: scheme, host: host, port: nil)?.host == proxy)
    }

    /// The rules of curl.
    @Test(arguments: [
        ("a.example", "a.example", true), ("a.example", "x.a.example", true), ("a.example", "xa.example", false),
        (".a.example", "a.example", true), ("a.example.", "a.example", true), ("a.example", "a.example.", true),
        ("b.example a.example", "a.example", true), ("b.example\ta.example", "a.example", true),
        (" ,, a.example ,\t", "a.example", true), ("", "a.example", false), (",", "a.example", false),
        (".", "a.example", false), ("*", "a.example", true), ("b.example,*", "a.example", true),
        ("0.0.1", "127.0.0.1", false), ("127.0.0.1", "127.0.0.1", true), ("1", "127.0.0.1", false),
        ("127.0.0.1", "x.127.0.0.1", false), ("::1", "::1", true), ("0:0:0:0:0:0:0:1", "::1", true),
        ("[::1]", "::1", true), ("::0001", "::1", true), ("::2", "::1", false), ("1", "::1", false),
        ("2001:DB8::A", "2001:db8:0:0:0:0:0:a", true), ("fe80::1", "fe80::1", true),
        ("fe80::1", "fe80::1%eth0", true), ("zone.example", "1000::%.zone.example", false),
    ])
    func noProxyNamesTheHost(_ list: String, _ host: String, _ isExcepted: Bool) throws {
        let environment = ProxyEnvironment { ["http_proxy": "http://p", "no_proxy": list][$0] }
        #expect(try (environment.proxy(scheme: "http", host: host, port: nil) == nil) == isExcepted)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("169.254/16", "169.254.7.7", true),
        ("192.0.2.128/25", "192.0.2.127", false), ("192.0.2.128/25", "192.0.2.128", true),
        ("0.0.0.0/0", "203.0.113.1", true), ("192.0.2.1/32", "192.0.2.1", true), ("192.0.2.1/33", "192.0.2.1", false),
        ("192.0.2.1/x", "192.0.2.1", false), ("192.0.2.0/-1", "192.0.2.1", false),
        ("2001:db8::/32", "2001:db8:1::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("2001:db8::/65", "2001:db8::8000:0:0:1", false),
        ("2001:db8::1/128", "2001:db8::1", true), ("::/0", "2001:db8::1", true), ("::/129", "::2", false),
        ("10.0.0.0/8", "ten.example", false), ("0.0.0.0/0", "2001:db8::1", false), ("/8", "10.0.0.1", false),
        ("[2001:db8::1]", "2001:db8::1", true), ("[2001:db8::1]:81", "2001:db8::1", false),
        ("[2001:db8::1]:80", "2001:db8::1", true),
    ])
    func networkIsExcepted(_ entry: String, _ host: String, _ isExcepted: Bool) throws {
        let environment = ProxyEnvironment { ["http_proxy": "http://p", "no_proxy": entry][$0] }
        #expect(try (environment.proxy(scheme: "http", host: host, port: nil) == nil) == isExcepted)
    }

    @Test func variableThatNamesNoProxyIsAnErrorWithItsName() {
        let environment = ProxyEnvironment { $0 == "https_proxy" ? "ftp://p" : nil }
        let error = #expect(throws: ProxySettingsError.self) {
            try environment.proxy(scheme: "https", host: "a.example", port: nil)
        }
        #expect(error?.text.contains("https_proxy") == true)
    }
}
