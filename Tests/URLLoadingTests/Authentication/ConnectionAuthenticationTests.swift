import Foundation
import Synchronization
import TLSEngine
import TestSupport
import Testing
import URLLoading
import WireText

/// GSS-API also implements the server's side.
@Suite("Authentication of connections", .loading, .timeLimit(.minutes(20)))
struct ConnectionAuthenticationTests {
    private static let credential = URLCredential(
        user: NTLMUsers.user, password: NTLMUsers.password, persistence: .forSession)

    /// Answers one method, and rejects everything else.
    private static func answering(
        _ credential: URLCredential = credential, by method: String = NSURLAuthenticationMethodNTLM
    ) -> Policies {
        var policies = Policies()
        let answer: Policies.ChallengeHandler = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == method else {
                return answer(.rejectProtectionSpace, nil)
            }
            answer(.useCredential, credential)
        }
        policies.sessionChallenge = answer
        policies.challenge = answer
        return policies
    }

    private static func hello(_ request: ReceivedRequest, _ client: String) -> Answer {
        .text("\(client): \(request.text)")
    }

    @Test func connectionIsAuthenticatedOnce() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        let recorder = DataRecorder(Self.answering())
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("DOMAIN\\ada: ".utf8) && notes.error == nil)
        #expect(recorder.log.names.filter { $0.contains("challenge") } == ["session challenge NTLM"])
        let space = try #require(notes.challenges.first?.protectionSpace)
        #expect(space.host == "127.0.0.1" && space.port == server.port && space.realm == nil && !space.isProxy())
        for _ in 0..<3 { #expect(try await session.load(server.url()).text == "DOMAIN\\ada: ") }
        #expect(tokens.tokens == 2 && recorder.notes.challenges.count == 1)
        // The first refusal came on another connection.
        let heard = server.requests.dropFirst()
        #expect(Set(heard.map(\.connection)).count == 1 && heard.count == 5)
        #expect(heard.map { $0["Authorization"]?.hasPrefix("NTLM ") } == [true, true, nil, nil, nil])
        session.invalidateAndCancel()
    }

    @Test func eachConnectionIsAuthenticated() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        let gate = Gate()
        server.on("/", tokens.script(Self.hello))
        server.on("/slow", tokens.script { Self.hello($0, $1).after(gate) })
        let session = URLSession.test(DataRecorder(Self.answering())) { $0.urlCache = nil }
        #expect(try await session.load(server.url()).text == "DOMAIN\\ada: ")
        let before = server.requests.count
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<4 { group.addTask { try await session.load(server.url("/slow")).text } }
            // One request uses the existing connection; each other one is refused and sends two tokens.
            await server.hasReceived(before + 1 + 3 * 3)
            gate.open()
            for try await text in group { #expect(text == "DOMAIN\\ada: ") }
        }
        #expect(tokens.tokens == 2 + 3 * 2)
        session.invalidateAndCancel()
    }

    /// A credential with the persistence `.none` is one task's own, and so is a connection that it authenticated.
    @Test(arguments: [nil, NTLMUsers.other])
    func authenticatedConnectionServesNoOtherCredential(_ second: String?) async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        let answers = Mutex<[String?]>([NTLMUsers.user, second])
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            guard let user = answers.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                return answer(.rejectProtectionSpace, nil)
            }
            answer(.useCredential, URLCredential(user: user, password: NTLMUsers.password, persistence: .none))
        }
        let session = URLSession.test(DataRecorder(policies)) { $0.urlCache = nil }
        #expect(try await session.load(server.url()).text == "DOMAIN\\ada: ")
        let authenticated = try #require(server.requests.last).connection
        let other = try await session.load(server.url())
        #expect(other.status == (second == nil ? 401 : 200) && other.text == (second.map { "\($0): " } ?? "no"))
        #expect(server.requests.dropFirst(3).allSatisfy { $0.connection != authenticated })
        #expect(server.requests.count == 3 + (second == nil ? 1 : 3))
        session.invalidateAndCancel()
    }

    @Test func wrongPasswordIsAskedForAgain() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            guard challenge.previousFailureCount < 2 else { return answer(.performDefaultHandling, nil) }
            answer(.useCredential, URLCredential(user: NTLMUsers.user, password: "wrong", persistence: .none))
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 401 && notes.error == nil)
        #expect(notes.challenges.map(\.previousFailureCount) == [0, 1, 2])
        #expect(notes.challenges[1].proposedCredential?.user == NTLMUsers.user && tokens.tokens == 4)
    }

    @Test func bodyIsRepeatedWithEachToken() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        var policies = Self.answering()
        policies.stream = { $0(InputStream(data: Data("from a stream".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let posted = try await session.load(.to(server.url(), "POST", body: "of a request"))
        #expect(posted.text == "DOMAIN\\ada: of a request")
        #expect(server.requests.map(\.text) == ["of a request", "of a request", "of a request"])
        session.invalidateAndCancel()
        let second = URLSession.test(recorder)
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        second.uploadTask(withStreamedRequest: request).resume()
        #expect(try await recorder.end().data == Data("DOMAIN\\ada: from a stream".utf8))
        #expect(server.requests.suffix(3).allSatisfy { $0.text == "from a stream" })
        second.invalidateAndCancel()
    }

    @Test func rejectedSchemeLeavesTheNextOne() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard(others: ["Negotiate"]))
        server.on("/", tokens.script(Self.hello))
        let recorder = DataRecorder(Self.answering())
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("DOMAIN\\ada: ".utf8))
        let methods = notes.challenges.map(\.protectionSpace.authenticationMethod)
        #expect(methods == [NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodNTLM])
    }

    @Test(arguments: [true, false])
    func connectionLostWithinTheHandshakeIsReplaced(isAnnounced: Bool) async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        let script = tokens.script(Self.hello)
        server.on("/") { request in
            // The answer to the first token is the connection's last.
            guard tokens.tokens == 0, request["Authorization"] != nil else { return script(request) }
            let answer = script(request)
            guard isAnnounced else { return answer.closing }
            let text = String(decoding: answer.bytes, as: UTF8.self)
            return Answer.raw(text.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n")).closing
        }
        let recorder = DataRecorder(Self.answering())
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("DOMAIN\\ada: ".utf8) && notes.error == nil && notes.challenges.count == 1)
    }

    @Test func serverThatAlwaysClosesIsGivenUp() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard())
        let script = tokens.script(Self.hello)
        server.on("/") { script($0).closing }
        let recorder = DataRecorder(Self.answering())
        let notes = try await recorder.run(server.url())
        #expect((notes.error as? URLError)?.code == .networkConnectionLost)
        #expect((2...5).contains(tokens.tokens), "\(tokens.tokens)")
    }

    @Test func serverThatAuthenticatesEachRequestGetsTokensAtOnce() async throws {
        let (server, tokens) = (try await WebServer(), try TokenGuard(keepsConnections: false))
        server.on("/", tokens.script(Self.hello))
        let session = URLSession.test(DataRecorder(Self.answering())) { $0.urlCache = nil }
        for _ in 0..<4 { #expect(try await session.load(server.url()).text == "DOMAIN\\ada: ") }
        // 3 requests for the first load; 3 for the second, which is refused without a token; 2 for each one after.
        #expect(server.requests.count == 3 + 3 + 2 + 2 && tokens.tokens == 8)
        session.invalidateAndCancel()
    }

    /// Answers with NTLM and trusts every server.
    private static let trusting: Policies = {
        var policies = Self.answering()
        let answer = policies.sessionChallenge
        policies.sessionChallenge = { challenge, completion in
            guard challenge.protectionSpace.serverTrust == nil else { return Policies.trust(challenge, completion) }
            answer?(challenge, completion)
        }
        return policies
    }()

    @Test func secureServerIsAskedOverHTTP11() async throws {
        let context = try Certificates.server { $0.applicationProtocols = ["h2", "http/1.1"] }
        let (server, tokens) = (try await WebServer(tls: context), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        let recorder = DataRecorder(Self.trusting)
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("DOMAIN\\ada: ".utf8) && notes.error == nil)
        let transactions = try #require(notes.metrics?.transactionMetrics)
        #expect(transactions.map(\.networkProtocolName) == ["h2", "http/1.1", "http/1.1"])
    }

    /// The pair MsvAvChannelBindings ([MS-NLMP] §2.2.2.1) has an MD5 of the bindings (RFC 4121 §4.1.1.2).
    private func expectBound(_ field: String?, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let field = try #require(field)
        let token = try #require(Data(base64Encoded: String(field.dropFirst("NTLM ".count))))
        let bindings = try #require(ChannelBinding.serverEndPoint(certificate: Array(Certificates.serverDER())))
        let structure = [UInt8](repeating: 0, count: 16) + [UInt8(bindings.count), 0, 0, 0] + bindings
        let pair = [0x0A, 0, 16, 0] + MessageDigest.of(structure, by: .md5)
        #expect(token.firstRange(of: pair) != nil, sourceLocation: sourceLocation)
    }

    @Test func tokensAreBoundToTheServersCertificate() async throws {
        let (server, tokens) = (try await WebServer(tls: try Certificates.server()), try TokenGuard())
        server.on("/", tokens.script(Self.hello))
        let notes = try await DataRecorder(Self.trusting).run(server.url())
        #expect(notes.data == Data("DOMAIN\\ada: ".utf8) && notes.error == nil)
        try self.expectBound(server.requests.last?["Authorization"])
    }

    @Test(.onlyWithHTTP11) func tokensOfForwardedRequestsAreBoundToTheProxysCertificate() async throws {
        let proxy = try await WebServer(tls: try Certificates.server())
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407)
        proxy.on("http://origin.example/", tokens.script(Self.hello))
        let session = URLSession.test(DataRecorder(Self.trusting)) {
            $0.urlCache = nil
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "https://127.0.0.1:\(proxy.port)"]
        }
        let url = try #require(URL(string: "http://origin.example/"))
        #expect(try await session.load(url).text == "DOMAIN\\ada: ")
        try self.expectBound(proxy.requests.last?["Proxy-Authorization"])
        session.invalidateAndCancel()
    }

    @Test func tokensOfTunnelsAreBoundToTheProxysCertificate() async throws {
        let proxy = try await WebServer(tls: try Certificates.server(), ["/": .close])
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407)
        proxy.on("origin.example:7", tokens.script { _, _ in .head(200) })
        let session = URLSession.test(DataRecorder(Self.trusting)) {
            $0.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "https://127.0.0.1:\(proxy.port)"]
        }
        for count in [3, 5] {
            let task = session.streamTask(withHostName: "origin.example", port: 7)
            task.resume()
            try await task.write(Data("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
            let (data, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 10, timeout: 60)
            #expect((data ?? Data()).isEmpty && isAtEnd)
            let asked = proxy.requests("origin.example:7")
            #expect(asked.count == count)
            try self.expectBound(asked.last?["Proxy-Authorization"])
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, .choosesItsConnections) func proxyAuthenticatesItsConnections() async throws {
        let proxy = try await WebServer()
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407)
        proxy.on("http://origin.example/", tokens.script(Self.hello))
        let recorder = DataRecorder(Self.answering())
        let session = URLSession.test(recorder) {
            $0.urlCache = nil
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port]
        }
        let url = try #require(URL(string: "http://origin.example/"))
        for _ in 0..<3 { #expect(try await session.load(url).text == "DOMAIN\\ada: ") }
        let challenges = recorder.notes.challenges
        #expect(challenges.count == 1 && challenges.first?.protectionSpace.isProxy() == true && tokens.tokens == 2)
        #expect(proxy.requests.allSatisfy { $0["Authorization"] == nil })
        session.invalidateAndCancel()
    }

    /// The proxy is also the target server.
    @Test(.choosesItsConnections) func proxyAuthenticatesItsTunnels() async throws {
        let proxy = try await WebServer(["/": .close])
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407)
        let script = tokens.script { _, _ in .head(200) }
        proxy.on("origin.example:7", script)
        let recorder = DataRecorder(Self.answering())
        let session = URLSession.test(recorder) {
            $0.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port]
        }
        for _ in 0..<2 {
            let task = session.streamTask(withHostName: "origin.example", port: 7)
            task.resume()
            try await task.write(Data("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
            let (data, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 10, timeout: 60)
            #expect((data ?? Data()).isEmpty && isAtEnd)
        }
        #expect(recorder.notes.challenges.map { $0.protectionSpace.isProxy() } == [true] && tokens.tokens == 4)
        // The first tunnel begins without a token; each connection then sends two.
        let asked = proxy.requests("origin.example:7")
        #expect(asked.map(\.connection) == [0, 1, 1, 2, 2])
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, .choosesItsConnections) func proxyAuthenticatesItsConnectionsByNegotiate() async throws {
        let proxy = try await WebServer()
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407, scheme: "Negotiate")
        proxy.on("http://origin.example/", tokens.script(Self.hello))
        let recorder = DataRecorder(Self.answering(by: NSURLAuthenticationMethodNegotiate))
        let session = URLSession.test(recorder) {
            $0.urlCache = nil
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port]
        }
        let url = try #require(URL(string: "http://origin.example/"))
        for _ in 0..<3 { #expect(try await session.load(url).text == "DOMAIN\\ada: ") }
        let challenges = recorder.notes.challenges
        #expect(challenges.count == 1 && challenges.first?.protectionSpace.isProxy() == true && tokens.tokens == 2)
        #expect(proxy.requests.allSatisfy { $0["Authorization"] == nil })
        session.invalidateAndCancel()
    }

    /// The proxy is also the server behind it.
    @Test(.choosesItsConnections) func proxyAuthenticatesItsTunnelsByNegotiate() async throws {
        let proxy = try await WebServer(["/": .close])
        let tokens = try TokenGuard(field: "Proxy-Authenticate", status: 407, scheme: "Negotiate")
        proxy.on("origin.example:7", tokens.script { _, _ in .head(200) })
        let session = URLSession.test(DataRecorder(Self.answering(by: NSURLAuthenticationMethodNegotiate))) {
            $0.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port]
        }
        let task = session.streamTask(withHostName: "origin.example", port: 7)
        task.resume()
        try await task.write(Data("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
        let (data, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 10, timeout: 60)
        #expect((data ?? Data()).isEmpty && isAtEnd && tokens.tokens == 2)
        #expect(proxy.requests("origin.example:7").map(\.connection) == [0, 1, 1])
        session.invalidateAndCancel()
    }

    @Test(arguments: ["NTLM", "Negotiate"])
    func unansweredChallengeReturnsTheRefusal(_ scheme: String) async throws {
        let server = try await WebServer(["/": .text("no", ["WWW-Authenticate: \(scheme)"], status: 401)])
        let session = URLSession.test()
        #expect(try await session.load(server.url()).status == 401)
        session.invalidateAndCancel()
    }

    @Test func webSocketRejectsNTLM() async throws {
        let server = try await WebServer(["/": .text("no", ["WWW-Authenticate: NTLM"], status: 401)])
        let session = URLSession.test(DataRecorder(Self.answering()))
        let socket = session.webSocketTask(
            with: try #require(URL(string: "\(server.isSecure ? "wss" : "ws")://127.0.0.1:\(server.port)/")))
        socket.resume()
        let error = await #expect(throws: URLError.self) { try await socket.receive() }
        #expect(error?.code == .userAuthenticationRequired)
        #expect(error?.localizedDescription.contains("NTLM") == true)
        session.invalidateAndCancel()
    }
}
