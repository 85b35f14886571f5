import Foundation
import StreamTransport
import Testing
import URLLoading

/// Sessions whose proxies are chosen by domain, tried in order, or chosen by a script.
@Suite("Choosing proxies", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct ProxyConfigurationTests {
    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func configuration(_ proxy: WebServer) throws -> ProxyConfiguration {
        ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: try self.port(proxy)))
    }

    private func port(_ proxy: WebServer) throws -> NWEndpoint.Port {
        try #require(NWEndpoint.Port(rawValue: UInt16(proxy.port)))
    }

    /// A proxy whose port has no listener.
    private static let dead = ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: 1))

    private static func script(_ body: String) -> [AnyHashable: Any] {
        [
            "ProxyAutoConfigEnable": 1,
            "ProxyAutoConfigJavaScript": "function FindProxyForURL(url, host) { \(body) }",
        ]
    }

    // MARK: proxyConfigurations

    @Test(.onlyWithHTTP11) func tunnelIsAskedForEvenForPlainHTTP() async throws {
        let proxy = try await WebServer(["/a": .text("through")])
        proxy.on("a.example:80", .head(200))
        let session = URLSession.test { $0.proxyConfigurations = [(try? self.configuration(proxy)) ?? Self.dead] }
        #expect(try await session.load(self.url("http://a.example/a")).text == "through")
        #expect(proxy.requests.map(\.method) == ["CONNECT", "GET"])
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func credentialIsSentAfterTheProxysChallenge() async throws {
        let proxy = try await WebServer(["/a": .text("through")])
        proxy.on("a.example:80") {
            $0["Proxy-Authorization"] == "Basic YWRhOnNlY3JldA=="
                ? .head(200) : .text("who?", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407)
        }
        var configuration = try self.configuration(proxy)
        configuration.applyCredential(username: "ada", password: "secret")
        let session = URLSession.test { $0.proxyConfigurations = [configuration] }
        #expect(try await session.load(self.url("http://a.example/a")).text == "through")
        session.invalidateAndCancel()
    }

    @Test(
        .onlyWithHTTP11,
        arguments: [
            ([], [], true), (["a.example"], [], true), (["*.a.example"], [], true), ([".example"], [], true),
            (["b.example"], [], false), (["xa.example", "www"], [], false), ([], ["a.example"], false),
            (["example"], ["a.example"], false), ([""], [], false), (["a.example."], [], true), (["."], [], false),
        ])
    func domainsDecideWhetherTheProxyIsUsed(_ matched: [String], _ excluded: [String], _ isUsed: Bool) async throws {
        let proxy = try await WebServer(["/a": .text("through")])
        proxy.on("www.a.example:80", .head(200))
        var configuration = try self.configuration(proxy)
        configuration.matchDomains = matched
        configuration.excludedDomains = excluded
        let session = URLSession.test {
            $0.proxyConfigurations = [configuration]
            // The direct way.
            $0.resolve = { _, _, answer in answer(.failure(.nameNotFound)) }
        }
        let loaded = try await session.load(self.url("http://www.a.example/a"))
        if isUsed {
            #expect(loaded.text == "through")
        } else {
            #expect(loaded.code == .cannotFindHost && proxy.requests.isEmpty)
        }
        session.invalidateAndCancel()
    }

    @Test func addressIsInNoDomain() async throws {
        let server = try await WebServer(["/a": .text("direct")])
        var configuration = Self.dead
        configuration.matchDomains = ["0.0.1"]
        let session = URLSession.test { $0.proxyConfigurations = [configuration] }
        #expect(try await session.load(server.url("/a")).text == "direct")
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func nextProxyIsTakenWhenOneCannotBeReached() async throws {
        let proxy = try await WebServer(["/a": .text("through")])
        proxy.on("a.example:80", .head(200))
        let list = [Self.dead, try self.configuration(proxy)]
        let session = URLSession.test { $0.proxyConfigurations = list }
        for _ in 0..<2 { #expect(try await session.load(self.url("http://a.example/a")).text == "through") }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func bodyIsSentThroughTheNextProxy() async throws {
        let proxy = try await WebServer(["/a": .text("through")])
        proxy.on("a.example:80", .head(200))
        let list = [Self.dead, try self.configuration(proxy)]
        let session = URLSession.test { $0.proxyConfigurations = list }
        var request = URLRequest(url: try self.url("http://a.example/a"))
        request.httpMethod = "POST"
        request.httpBody = Data("content".utf8)
        #expect(try await session.load(request).text == "through")
        #expect(proxy.requests.last?.body == Array("content".utf8))
        session.invalidateAndCancel()
    }

    @Test func directConnectionIsMadeOnlyIfAllowed() async throws {
        let server = try await WebServer(["/a": .text("direct")])
        let forbidding = URLSession.test { $0.proxyConfigurations = [Self.dead] }
        let error = try await forbidding.load(server.url("/a")).error as? URLError
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.localizedDescription.contains("no connection to the proxy") == true)
        forbidding.invalidateAndCancel()
        var configuration = Self.dead
        configuration.allowFailover = true
        let allowing = URLSession.test { $0.proxyConfigurations = [configuration] }
        #expect(try await allowing.load(server.url("/a")).text == "direct")
        allowing.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func refusalIsNotFollowedByAnotherWay() async throws {
        let server = try await WebServer(["/a": .text("direct")])
        let proxy = try await WebServer()
        proxy.on("127.0.0.1:\(server.port)", .text("not allowed", status: 403))
        var configuration = try self.configuration(proxy)
        configuration.allowFailover = true
        let session = URLSession.test { $0.proxyConfigurations = [configuration] }
        let error = try await session.load(server.url("/a")).error as? URLError
        #expect(error?.localizedDescription.contains("not allowed") == true)
        #expect(server.requests.isEmpty)
        session.invalidateAndCancel()
    }

    @Test func proxyWithoutAPortIsAnError() async throws {
        let session = URLSession.test {
            $0.proxyConfigurations = [ProxyConfiguration(socksv5Proxy: .hostPort(host: "p.example", port: 0))]
        }
        let error = try await session.load(self.url("http://a.example/")).error as? URLError
        #expect(error?.code == .unsupportedURL)
        #expect(error?.localizedDescription.contains("p.example:0") == true)
        session.invalidateAndCancel()
    }

    @Test func equalEndpointsAreWrittenDifferently() throws {
        #expect(NWEndpoint.hostPort(host: "[::1]", port: 80) == .hostPort(host: .init("::1"), port: .http))
        #expect(NWEndpoint.hostPort(host: "::1", port: .socks).debugDescription == "[::1]:1080")
        #expect(NWEndpoint.Port("65536") == nil && NWEndpoint.Port("443") == .https)
    }

    @Test(.onlyWithHTTP11) func streamAndWebSocketTasksTakeTheNextProxy() async throws {
        let proxy = try await WebServer()
        proxy.on("a.example:7", .text("not allowed", status: 403))
        proxy.on("a.example:80", .text("not allowed", status: 403))
        let list = [Self.dead, try self.configuration(proxy)]
        let session = URLSession.test { $0.proxyConfigurations = list }
        let stream = session.streamTask(withHostName: "a.example", port: 7)
        stream.resume()
        let error = await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 240)
        }
        #expect(error?.localizedDescription.contains("not allowed") == true)
        let socket = session.webSocketTask(with: try self.url("ws://a.example/"))
        socket.resume()
        await #expect(throws: URLError.self) { try await socket.receive() }
        #expect(proxy.requests.map(\.target) == ["a.example:7", "a.example:80"])
        session.invalidateAndCancel()
    }

    /// The last accepted credential of a proxy is not that of every user.
    @Test(.onlyWithHTTP11) func eachUserOfAProxyHasACredential() async throws {
        let proxy = try await WebServer(["/": .text("through")])
        let configurations = try ["ada", "bob"].map { user in
            var configuration = try self.configuration(proxy)
            configuration.applyCredential(username: user, password: "secret")
            configuration.matchDomains = ["\(user).example"]
            proxy.on("\(user).example:80") {
                $0["Proxy-Authorization"] == nil
                    ? .text("who?", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407) : .head(200)
            }
            return configuration
        }
        let session = URLSession.test { $0.proxyConfigurations = configurations }
        for user in ["ada", "bob", "ada", "bob"] {
            let request = URLRequest.to(try self.url("http://\(user).example/"), "GET", ["Connection": "close"])
            #expect(try await session.load(request).text == "through")
        }
        for user in ["ada", "bob"] {
            let value = "Basic \(Data("\(user):secret".utf8).base64EncodedString())"
            let asked = proxy.requests("\(user).example:80").map { $0["Proxy-Authorization"] }
            #expect(asked.first == .some(nil) && asked.dropFirst().allSatisfy { $0 == value })
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func credentialOfAConfigurationIsNotThatOfAnother() async throws {
        let proxy = try await WebServer(["/": .text("through")])
        for host in ["a.example:80", "b.example:80"] {
            proxy.on(host) {
                $0["Proxy-Authorization"] == nil
                    ? .text("who?", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407) : .head(200)
            }
        }
        var (known, unknown) = (try self.configuration(proxy), try self.configuration(proxy))
        known.applyCredential(username: "ada", password: "secret")
        (known.matchDomains, unknown.matchDomains) = (["a.example"], ["b.example"])
        let list = [known, unknown]
        let session = URLSession.test { $0.proxyConfigurations = list }
        #expect(try await session.load(self.url("http://a.example/")).text == "through")
        #expect(try await session.load(self.url("http://b.example/")).code == .userAuthenticationRequired)
        #expect(proxy.requests("b.example:80").map { $0["Proxy-Authorization"] } == [nil])
        session.invalidateAndCancel()
    }

    // MARK: Scripts

    @Test(.onlyWithHTTP11) func scriptChoosesTheProxy() async throws {
        let proxy = try await WebServer()
        proxy.on("http://a.example/a", .text("through"))
        let port = proxy.port
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.script(
                """
                return shExpMatch(url, "http://*.example/a?*") && host === "a.example"
                    ? "PROXY 127.0.0.1:1; PROXY 127.0.0.1:\(port); DIRECT" : "SOCKS 127.0.0.1:1";
                """)
        }
        for _ in 0..<3 { #expect(try await session.load(self.url("http://u:p@a.example/a?b#c")).text == "through") }
        #expect(proxy.requests.map(\.target) == Array(repeating: "http://a.example/a?b", count: 3))
        #expect(try await session.load(self.url("http://b.example/a")).code == .cannotConnectToHost)
        session.invalidateAndCancel()
    }

    @Test func scriptMayChooseTheDirectWayAndLooksNamesUp() async throws {
        let server = try await WebServer(["/a": .text("direct")])
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.script(
                """
                if (dnsResolve("localhost") !== "127.0.0.1" || isResolvable("nothing.invalid")) return "PROXY no:1";
                return isInNet(host, "127.0.0.0", "255.0.0.0") ? "DIRECT" : "PROXY no.invalid:1";
                """)
        }
        async let texts = [
            session.load(server.url("/a")).text, session.load(server.url("/a")).text,
            session.load(server.url("/a")).text,
        ]
        #expect(try await texts == ["direct", "direct", "direct"])
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func scriptAsksTheResolverOfTheSession() async throws {
        let proxy = try await WebServer(["http://a.example/": .text("through")])
        let port = proxy.port
        let session = URLSession.test {
            $0.resolve = { name, port, answer in
                answer(
                    name == "known.example"
                        ? .success([.ipv4(address: 0xC000_0207, port: port)]) : .failure(.nameNotFound))
            }
            $0.connectionProxyDictionary = Self.script(
                """
                return dnsResolve("known.example") === "192.0.2.7" && !isResolvable("localhost")
                    ? "PROXY 127.0.0.1:\(port)" : "PROXY no.invalid:1";
                """)
        }
        #expect(try await session.load(self.url("http://a.example/")).text == "through")
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func scriptIsFetchedOnce() async throws {
        let proxy = try await WebServer()
        proxy.on("http://a.example/", .text("through"))
        let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(proxy.port)'; }"
        proxy.on("/proxy.pac", .text(script, ["Content-Type: application/x-ns-proxy-autoconfig"]))
        let address = proxy.url("/proxy.pac").absoluteString
        let session = URLSession.test {
            $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": address]
        }
        for _ in 0..<3 { #expect(try await session.load(self.url("http://a.example/")).text == "through") }
        #expect(proxy.requests.map(\.target).count { $0 == "/proxy.pac" } == 1)
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ("throw new Error('broken')", "broken"), ("return 'GOPHER a:1'", "names no proxy"),
        // Spellings that the system finds without asking a name server.
        (
            """
            for (var i = 0; i < 512; i++) {
                dnsResolve("localhost".replace(/./g, function (c, n) { return i >> n & 1 ? c.toUpperCase() : c; }));
            }
            return "";
            """, "looks more than 20 names up"
        ),
    ]) func scriptThatFailsIsAnError(_ body: String, _ text: String) async throws {
        let session = URLSession.test { $0.connectionProxyDictionary = Self.script(body) }
        let error = try await session.load(self.url("http://a.example/")).error as? URLError
        #expect(error?.code == .unsupportedURL)
        #expect(error?.localizedDescription.contains(text) == true, "\(error?.localizedDescription ?? "")")
        let stream = session.streamTask(withHostName: "a.example", port: 7)
        stream.resume()
        let other = await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 240)
        }
        #expect(other?.localizedDescription.contains(text) == true)
        session.invalidateAndCancel()
    }

    @Test func scriptThatCannotBeLoadedIsAnError() async throws {
        let server = try await WebServer(["/gone": .text("no", status: 404)])
        server.on("/long", .text(String(repeating: " ", count: (1 << 20) + 1)))
        for (path, text) in [("/gone", "answered 404"), ("/long", "more than 1048576 bytes")] {
            let address = server.url(path).absoluteString
            let session = URLSession.test {
                $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": address]
            }
            let error = try await session.load(self.url("http://a.example/")).error as? URLError
            #expect(error?.localizedDescription.contains(text) == true, "\(error?.localizedDescription ?? "")")
            session.invalidateAndCancel()
        }
    }

    @Test func exceptionsDoNotAskTheScript() async throws {
        let server = try await WebServer(["/a": .text("direct")])
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.script("throw 1").merging(["ExceptionsList": ["127.0.0.1"]]) { $1 }
        }
        #expect(try await session.load(server.url("/a")).text == "direct")
        session.invalidateAndCancel()
    }
}
