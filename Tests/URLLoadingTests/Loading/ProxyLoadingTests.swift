import Foundation
import Synchronization
import Testing
import URLLoading
import WireText

/// A test server acts as the proxy: it gets requests in absolute form, and after CONNECT it acts as the server.
@Suite("Loading through a proxy", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct ProxyLoadingTests {
    private static func settings(_ proxy: WebServer, _ more: [AnyHashable: Any] = [:]) -> [AnyHashable: Any] {
        let settings: [AnyHashable: Any] = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port, "HTTPSEnable": 1,
            "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port,
        ]
        return settings.merging(more) { $1 }
    }

    private static var credential: [AnyHashable: Any] {
        ["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "secret"]
    }

    private static let basic = "Basic YWRhOnNlY3JldA=="

    /// Challenges each request without a password.
    private static func asking(
        _ answer: Answer, for credential: String = basic, by challenge: String = "Basic realm=\"p\""
    ) -> @Sendable (ReceivedRequest) -> Answer {
        {
            $0["Proxy-Authorization"]?.hasPrefix(credential) == true
                ? answer : .text("who are you?", ["Proxy-Authenticate: \(challenge)"], status: 407)
        }
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test(.onlyWithHTTP11) func requestIsForwardedInAbsoluteForm() async throws {
        let proxy = try await WebServer()
        proxy.on("http://origin.example/a", Self.asking(.text("through")))
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        session.dataTask(with: try self.url("http://origin.example/a?b")).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("through".utf8))
        let heard = try #require(proxy.requests.last)
        #expect(heard.target == "http://origin.example/a?b" && heard["Host"] == "origin.example")
        // The configured credential is sent when the proxy asks, and from then on.
        #expect(try await session.load(self.url("http://origin.example/a")).text == "through")
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == [nil, Self.basic, Self.basic])
        let transaction = try #require(notes.metrics?.transactionMetrics.last)
        #expect(transaction.isProxyConnection && transaction.remotePort == Int(proxy.port))
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func hostsOfAProxyShareNoConnection() async throws {
        let proxy = try await WebServer(["http://a.example/": .text("a"), "http://b.example/": .text("b")])
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        for (host, text) in [("a", "a"), ("b", "b"), ("a", "a")] {
            #expect(try await session.load(self.url("http://\(host).example/")).text == text)
        }
        #expect(proxy.connections == 2)
        session.invalidateAndCancel()
    }

    @Test func exceptionIsReachedDirectly() async throws {
        let server = try await WebServer(["/": .text("direct")])
        let proxy = try await WebServer()
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, ["ExceptionsList": ["127.0.0.1"]])
        }
        #expect(try await session.load(server.url()).text == "direct" && proxy.connections == 0)
        session.invalidateAndCancel()
    }

    @Test func streamTaskGoesThroughATunnel() async throws {
        let proxy = try await WebServer(["/inside": .text("the server")])
        proxy.on("origin.example:7", Self.asking(.head(200)))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        let task = session.streamTask(withHostName: "origin.example", port: 7)
        task.resume()
        try await task.write(Data("GET /inside HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
        let (data, _) = try await task.readData(ofMinLength: 60, maxLength: 10_000, timeout: 60)
        #expect(String(decoding: data ?? Data(), as: UTF8.self).contains("the server"))
        #expect(proxy.requests.map(\.target) == ["origin.example:7", "origin.example:7", "/inside"])
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == [nil, Self.basic, nil])
        session.invalidateAndCancel()
    }

    @Test func webSocketRequestsATunnelWithoutTLSToo() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:80", .text("no tunnels today", status: 403))
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let task = session.webSocketTask(with: try self.url("ws://origin.example/"))
        task.resume()
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.localizedDescription.contains("no tunnels today") == true)
        #expect(proxy.requests.first?.method == "CONNECT")
        session.invalidateAndCancel()
    }

    @Test func refusedTunnelIsAnErrorWithTheProxysWords() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:443", .text("Not from here.", status: 403))
        proxy.on("origin.example:444", .text("No full stop", status: 403))
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let error = try await session.load(self.url("https://origin.example/")).error as? URLError
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.localizedDescription.contains("403") == true)
        #expect(error?.localizedDescription.hasSuffix(": Not from here.") == true)
        let other = try await session.load(self.url("https://origin.example:444/")).error
        #expect(other?.localizedDescription.hasSuffix(": No full stop.") == true)
        session.invalidateAndCancel()
    }

    @Test func refusedCredentialIsNotOfferedAgain() async throws {
        let proxy = try await WebServer()
        proxy.on("origin.example:443", .text("", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        #expect(try await session.load(self.url("https://origin.example/")).code == .userAuthenticationRequired)
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == [nil, Self.basic])
        session.invalidateAndCancel()
    }

    @Test func requestForAnUpgradeGoesThroughATunnel() async throws {
        let proxy = try await WebServer(["/": .text("not now")])
        proxy.on("origin.example:80") { $0.method == "CONNECT" ? .head(200) : .close }
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let fields = ["Upgrade": "echo", "Connection": "Upgrade"]
        let loaded = try await session.load(.to(self.url("http://origin.example/"), "GET", fields))
        #expect(loaded.text == "not now" && proxy.requests.map(\.target) == ["origin.example:80", "/"])
        session.invalidateAndCancel()
    }

    // MARK: Challenges

    @Test(.onlyWithHTTP11) func nonceThatIsAlwaysStaleEndsTheTask() async throws {
        let proxy = try await WebServer()
        let challenge = "Digest realm=\"p\", nonce=\"n\", qop=\"auth\", stale=true"
        proxy.on("http://origin.example/", Self.asking(.text(""), for: "never", by: challenge))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        #expect(try await session.load(self.url("http://origin.example/")).status == 407)
        #expect(proxy.requests.count == 5)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, arguments: ["http", "https"])
    func delegateIsAskedForTheProxysCredential(_ scheme: String) async throws {
        let proxy = try await WebServer()
        let wanted = "Basic \(Data("user:passwd".utf8).base64EncodedString())"
        proxy.on("http://origin.example/", Self.asking(.text("in"), for: wanted))
        proxy.on("origin.example:443", Self.asking(.text("known, but no", status: 403), for: wanted))
        let spaces = Mutex<[URLProtectionSpace]>([])
        var policies = Policies()
        policies.challenge = { challenge, answer in
            spaces.withLock { $0.append(challenge.protectionSpace) }
            answer(.useCredential, URLCredential(user: "user", password: "passwd", persistence: .forSession))
        }
        let session = URLSession.test(DataRecorder(policies)) { $0.connectionProxyDictionary = Self.settings(proxy) }
        for _ in 0..<2 {
            let loaded = try await session.load(self.url("\(scheme)://origin.example/"))
            #expect(scheme == "http" ? loaded.text == "in" : loaded.code == .cannotConnectToHost)
        }
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == [nil, wanted, wanted])
        let space = try #require(spaces.withLock { $0 }.first)
        #expect(
            spaces.withLock { $0.count } == 1 && space.isProxy() && space.proxyType == NSURLProtectionSpaceHTTPProxy)
        #expect(space.host == "127.0.0.1" && space.port == Int(proxy.port) && space.realm == "p")
        session.invalidateAndCancel()
    }

    /// The digest is of the request's target, which is a whole URL (RFC 7616 §3.4).
    @Test(.onlyWithHTTP11) func digestIsAnsweredForTheTargetThatTheProxyGets() async throws {
        let proxy = try await WebServer()
        let challenge = "Digest realm=\"p\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
        proxy.on("http://origin.example/a", Self.asking(.text("in"), for: "Digest ", by: challenge))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        #expect(try await session.load(self.url("http://origin.example/a?b")).text == "in")
        #expect(
            proxy.requests.last?["Proxy-Authorization"]?.contains("uri=\"http://origin.example/a?b\"") == true)
        session.invalidateAndCancel()
    }

    /// `domain` of a proxy has no meaning (RFC 7616 §3.3); its `nextnonce` has (§3.5).
    @Test(.onlyWithHTTP11) func digestOfAProxyIsForAllRequestsAndAdoptsItsNextNonce() async throws {
        let proxy = try await WebServer()
        let challenge = "Digest realm=\"p\", nonce=\"n\", qop=\"auth\", domain=\"/only\""
        let answer = Answer.text("in", ["Proxy-Authentication-Info: nextnonce=\"m\""])
        for path in ["a", "b"] {
            proxy.on("http://origin.example/\(path)", Self.asking(answer, for: "Digest ", by: challenge))
        }
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        for path in ["a", "b"] {
            #expect(try await session.load(self.url("http://origin.example/\(path)")).text == "in")
        }
        let sent = proxy.requests.map { $0["Proxy-Authorization"] ?? "" }
        #expect(sent.count == 3 && sent[0].isEmpty)
        #expect(sent[1].contains("nonce=\"n\"") && sent[2].contains("nonce=\"m\"") && sent[2].contains("nc=00000001"))
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, arguments: ["http", "https"])
    func cancelledChallengeCancelsTheTask(_ scheme: String) async throws {
        let proxy = try await WebServer()
        proxy.on("http://origin.example/", Self.asking(.text("")))
        proxy.on("origin.example:443", Self.asking(.head(200)))
        var policies = Policies()
        policies.challenge = { $1(.cancelAuthenticationChallenge, nil) }
        let session = URLSession.test(DataRecorder(policies)) { $0.connectionProxyDictionary = Self.settings(proxy) }
        #expect(try await session.load(self.url("\(scheme)://origin.example/")).code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func forwardedRequestWithoutACredentialGetsThe407() async throws {
        let proxy = try await WebServer()
        proxy.on("http://origin.example/", Self.asking(.text("")))
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let loaded = try await session.load(self.url("http://origin.example/"))
        #expect(loaded.status == 407 && loaded.text == "who are you?")
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func bodyIsSentAgainAfterTheProxysChallenge() async throws {
        let proxy = try await WebServer()
        proxy.on("http://origin.example/", Self.asking(.text("taken")))
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy, Self.credential)
        }
        #expect(try await session.load(.to(self.url("http://origin.example/"), "PUT", body: "a body")).text == "taken")
        #expect(proxy.requests.map(\.text) == ["a body", "a body"])
        session.invalidateAndCancel()
    }

    @Test func unreachableProxyIsNamedInTheError() async throws {
        let session = URLSession.test {
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 1]
        }
        let error = try await session.load(self.url("http://origin.example/")).error as? URLError
        #expect(error?.code == .cannotConnectToHost && error?.localizedDescription.contains("proxy") == true)
        session.invalidateAndCancel()
    }

    @Test func addressesThatAreNotPermittedAreNotReachedThroughAProxyEither() async throws {
        let proxy = try await WebServer()
        let session = URLSession.test {
            $0.connectionProxyDictionary = Self.settings(proxy)
            $0.permitsAddress = { address, host in host == "127.0.0.1" || !address.isPrivate }
        }
        #expect(try await session.load(self.url("https://10.0.0.1/")).error != nil && proxy.requests.isEmpty)
        session.invalidateAndCancel()
    }

    // MARK: The program's own Proxy-Authorization

    private static let ownField = ["Proxy-Authorization": "Basic cHJpdmF0ZQ=="]

    enum WayAroundTheProxy: CaseIterable { case none, exception, failover, script }

    /// It is for a proxy that forwards the request (RFC 9110 §11.7.2).
    @Test(arguments: WayAroundTheProxy.allCases)
    func serverDoesNotGetWhatIsForAProxy(_ way: WayAroundTheProxy) async throws {
        let (server, proxy) = (try await WebServer(["/": .text("direct")]), try await WebServer())
        let session = URLSession.test {
            switch way {
            case .none: $0.connectionProxyDictionary = [:]
            case .exception:
                $0.connectionProxyDictionary = Self.settings(proxy, ["ExceptionsList": ["127.0.0.1"]])
            case .failover:
                var dead = ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: 1))
                dead.allowFailover = true
                $0.proxyConfigurations = [dead]
            case .script:
                $0.connectionProxyDictionary = [
                    "ProxyAutoConfigEnable": 1,
                    "ProxyAutoConfigJavaScript": "function FindProxyForURL() { return 'DIRECT'; }",
                ]
            }
        }
        #expect(try await session.load(.to(server.url(), "GET", Self.ownField)).text == "direct")
        #expect(server.requests.map { $0["Proxy-Authorization"] } == [nil] && proxy.connections == 0)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func proxyThatForwardsGetsTheProgramsOwnField() async throws {
        let proxy = try await WebServer(["http://origin.example/": .text("through")])
        let session = URLSession.test { $0.connectionProxyDictionary = Self.settings(proxy) }
        let request = URLRequest.to(try self.url("http://origin.example/"), "GET", Self.ownField)
        #expect(try await session.load(request).text == "through")
        #expect(proxy.requests.map { $0["Proxy-Authorization"] } == ["Basic cHJpdmF0ZQ=="])
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true]) func webSocketServerDoesNotGetWhatIsForAProxy(hasProxy: Bool) async throws {
        let heads = Mutex<[String?]>([])
        let server = try await ConnectionServer { stream in
            let head = try await stream.head()
            heads.withLock { $0 += [head.fields["Proxy-Authorization"], head.fields["Proxy-Connection"]] }
            _ = try await stream.accept(head).echo()
        }
        let proxy = try await RelayProxy()
        let session = URLSession.test {
            $0.connectionProxyDictionary =
                hasProxy ? ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port] : [:]
        }
        var request = URLRequest(url: server.url())
        for (name, value) in Self.ownField { request.setValue(value, forHTTPHeaderField: name) }
        request.setValue("keep-alive", forHTTPHeaderField: "Proxy-Connection")
        let task = session.webSocketTask(with: request)
        task.resume()
        try await task.sendPing()
        #expect(heads.withLock { $0 } == [nil, nil] && proxy.tunnels == (hasProxy ? 1 : 0))
        session.invalidateAndCancel()
    }
}
