import Foundation
import HTTPSemantics
import SessionTasks
import Synchronization
import Testing
import URLLoading
import WebSocketProtocol

@Suite("The opening handshake of WebSocket tasks", .loading, .timeLimit(.minutes(20)))
struct WebSocketOpeningTests {
    /// The heads of the requests that came.
    private final class Heads: Sendable {
        private let all = Mutex<[RequestHead]>([])
        var list: [RequestHead] { self.all.withLock { $0 } }
        func add(_ head: RequestHead) { self.all.withLock { $0.append(head) } }
    }

    /// Answers each connection with the result of `script` for its request: `nil` accepts it.
    private static func server(
        _ heads: Heads = Heads(), fields: [WebSocketProtocol.HTTPField] = [],
        _ script: @escaping @Sendable (RequestHead) -> (Int, [String])?
    ) async throws -> ConnectionServer {
        try await ConnectionServer.webSockets { stream in
            let head = try await stream.head()
            heads.add(head)
            if let (status, fields) = script(head) {
                try await stream.refuse(status, fields, "because")
            } else {
                _ = try await stream.accept(head, subprotocols: ["chat"], fields: fields).echo()
            }
        }
    }

    private func open(
        _ request: URLRequest, _ recorder: ConnectionRecorder = ConnectionRecorder(),
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> URLSessionWebSocketTask {
        let task = URLSession.test(recorder, change).webSocketTask(with: request)
        task.resume()
        try await task.sendPing()
        return task
    }

    /// Runs a task that does not open to its end.
    private func fail(
        _ request: URLRequest, _ recorder: ConnectionRecorder = ConnectionRecorder(),
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> (URLSessionWebSocketTask, URLError) {
        let task = URLSession.test(recorder, change).webSocketTask(with: request)
        task.resume()
        let error = try #require(await #expect(throws: URLError.self) { try await task.receive() })
        #expect((try await recorder.end().error as? URLError)?.code == error.code)
        #expect(!recorder.eventsOfTheTask.contains { $0.hasPrefix("open") } && task.closeCode == .invalid)
        return (task, error)
    }

    // MARK: The request

    @Test func subprotocolsAreOfferedAsAList() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { _ in nil }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url("/room?x=1"), protocols: ["soap", "chat"])
        #expect(task.originalRequest?.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") == "soap, chat")
        task.resume()
        #expect(await recorder.log.has("open chat"))
        let head = try #require(heads.list.first)
        #expect(head.target == "/room?x=1" && head.fields["Sec-WebSocket-Protocol"] == "soap, chat")
        #expect(head.fields["Host"] == "127.0.0.1:\(server.port)" && head.method == "GET")
        session.invalidateAndCancel()
    }

    @Test func fieldsOfTheRequestAndOfTheSessionAreSent() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { _ in nil }
        var request = URLRequest(url: server.url())
        request.setValue("chat", forHTTPHeaderField: "Sec-WebSocket-Protocol")
        request.setValue("mine", forHTTPHeaderField: "X-One")
        request.setValue("Bearer token", forHTTPHeaderField: "Authorization")
        // Fields that the handshake sets itself.
        request.setValue("x", forHTTPHeaderField: "Sec-WebSocket-Key")
        request.setValue("keep-alive", forHTTPHeaderField: "Connection")
        let recorder = ConnectionRecorder()
        let task = try await self.open(request, recorder) { configuration in
            configuration.httpAdditionalHeaders = ["X-One": "theirs", "X-Two": "session", "Authorization": "no"]
        }
        let fields = try #require(heads.list.first?.fields)
        #expect(fields["Sec-WebSocket-Protocol"] == "chat")
        #expect(fields["X-One"] == "mine" && fields["X-Two"] == "session")
        #expect(fields.values("Authorization") == ["Bearer token"] && fields.values("Connection") == ["Upgrade"])
        #expect(fields.values("Sec-WebSocket-Key").count == 1 && fields["Sec-WebSocket-Key"] != "x")
        task.cancel()
        _ = try await recorder.end()
        #expect(recorder.eventsOfTheTask.contains("open chat"))
    }

    @Test(arguments: ["http://127.0.0.1/", "ftp://127.0.0.1/", "https://127.0.0.1/", "nothing", "ws:///path"])
    func otherSchemeIsRefused(_ text: String) async throws {
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: try #require(URL(string: text)))
        task.resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == (text.hasPrefix("ws:") ? .badURL : .unsupportedURL) && task.state == .completed)
        let later = await #expect(throws: URLError.self) { try await task.send(.string("x")) }
        #expect(later?.code == error.code)
        session.invalidateAndCancel()
    }

    @Test func otherMethodOrBodyIsRefused() async throws {
        for (method, body) in [("POST", nil), ("GET", Data("x".utf8))] {
            var request = URLRequest(url: try #require(URL(string: "ws://127.0.0.1:9/")))
            request.httpMethod = method
            request.httpBody = body
            let (_, error) = try await self.fail(request)
            #expect(error.code == .unsupportedURL)
        }
    }

    // MARK: Refusals

    @Test func refusedOpeningHasTheStatus() async throws {
        let server = try await Self.server { _ in (404, ["X-Why: gone"]) }
        let (task, error) = try await self.fail(URLRequest(url: server.url()))
        #expect(error.code == .badServerResponse && error.handshakeStatusCode == 404)
        #expect(error.failingURL == server.url() && error.localizedDescription.contains("404"))
        let response = try #require(task.response as? HTTPURLResponse)
        #expect(response.statusCode == 404 && response.value(forHTTPHeaderField: "X-Why") == "gone")
        let later = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(later?.code == .badServerResponse)
    }

    @Test(arguments: [
        "Sec-WebSocket-Accept: wrong", "Sec-WebSocket-Protocol: never-offered",
        "Sec-WebSocket-Extensions: permessage-deflate",
    ])
    func unofferedSubprotocolOrExtensionIsRefused(_ field: String) async throws {
        let server = try await ConnectionServer.webSockets { stream in try await stream.upgrade([field]) }
        let (task, error) = try await self.fail(URLRequest(url: server.url()))
        #expect(error.code == .badServerResponse && (task.response as? HTTPURLResponse)?.statusCode == 101)
    }

    @Test func droppedHandshakeIsAFailure() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            _ = try await stream.head()
            stream.closeWrite()
        }
        let (task, error) = try await self.fail(URLRequest(url: server.url()))
        #expect(error.code == .badServerResponse && task.response == nil)
    }

    @Test func handshakeIsHeldToTheRequestsTimeout() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { _ in await gate.pass() }
        let request = URLRequest(url: server.url(), timeoutInterval: 0.1)
        let (_, error) = try await self.fail(request)
        #expect(error.code == .timedOut)
        let (_, other) = try await self.fail(URLRequest(url: server.url())) { $0.timeoutIntervalForRequest = 0.1 }
        #expect(other.code == .timedOut)
        gate.open()
    }

    @Test func handshakeIsCancelledAtOnce() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { _ in await gate.pass() }
        for closes in [false, true] {
            let recorder = ConnectionRecorder()
            let session = URLSession.test(recorder)
            let task = session.webSocketTask(with: server.url())
            task.resume()
            closes ? task.cancel(with: .goingAway, reason: nil) : task.cancel()
            #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
            session.invalidateAndCancel()
        }
        gate.open()
    }

    // MARK: Redirects

    @Test func handshakeFollowsRedirects() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { $0.target == "/old" ? (302, ["Location: /new"]) : nil }
        let recorder = ConnectionRecorder()
        let task = try await self.open(URLRequest(url: server.url("/old")), recorder)
        #expect(heads.list.map(\.target) == ["/old", "/new"])
        #expect(task.currentRequest?.url == server.url("/new") && task.originalRequest?.url == server.url("/old"))
        #expect(recorder.notes.redirects.first?.request.url == server.url("/new"))
        task.cancel(with: .normalClosure, reason: nil)
        let notes = try await recorder.end()
        #expect(recorder.eventsOfTheTask.prefix(3) == ["created", "redirect 302", "open -"])
        let metrics = try #require(notes.metrics)
        #expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2)
        #expect(metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 101])
    }

    @Test func redirectToHTTPStaysAWebSocket() async throws {
        let heads = Heads()
        let target = try await Self.server(heads) { _ in nil }
        let location = target.url("/there", scheme: target.isSecure ? "https" : "http").absoluteString
        let server = try await Self.server { _ in (307, ["Location: \(location)"]) }
        var request = URLRequest(url: server.url())
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("kept", forHTTPHeaderField: "X-Kept")
        let task = try await self.open(request)
        #expect(task.currentRequest?.url == target.url("/there"))
        // To another place no secret goes along.
        #expect(heads.list.first?.fields["Authorization"] == nil && heads.list.first?.fields["X-Kept"] == "kept")
        task.cancel()
    }

    @Test func delegateMayRefuseARedirectOfTheOpening() async throws {
        let server = try await Self.server { _ in (302, ["Location: /new"]) }
        var policies = Policies()
        policies.redirect = { $2(nil) }
        let (task, error) = try await self.fail(URLRequest(url: server.url()), ConnectionRecorder(policies))
        #expect(error.handshakeStatusCode == 302 && (task.response as? HTTPURLResponse)?.statusCode == 302)
    }

    @Test func handshakeFollowsTwentyRedirectsAtMost() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { _ in (302, ["Location: /again"]) }
        let (_, error) = try await self.fail(URLRequest(url: server.url()))
        #expect(error.code == .httpTooManyRedirects && heads.list.count == 21)
        let other = try await Self.server { _ in (302, ["Location: ftp://127.0.0.1/"]) }
        #expect(try await self.fail(URLRequest(url: other.url())).1.code == .unsupportedURL)
    }

    // MARK: Credentials

    @Test func basicChallengeIsAnswered() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { head in
            head.fields["Authorization"] == "Basic dXNlcjpwYXNz" ? nil : (401, ["WWW-Authenticate: Basic realm=\"a\""])
        }
        let recorder = ConnectionRecorder(.credential("user", "pass"))
        let task = try await self.open(URLRequest(url: server.url()), recorder)
        let space = try #require(recorder.notes.challenges.first?.protectionSpace)
        #expect(space.realm == "a" && space.port == server.port && heads.list.count == 2)
        task.cancel()
        _ = try await recorder.end()
        #expect(recorder.eventsOfTheTask.prefix(3) == ["created", "challenge HTTPBasic", "open -"])
    }

    @Test func digestChallengeIsAnswered() async throws {
        let heads = Heads()
        let server = try await Self.server(heads) { head in
            let field = head.fields["Authorization"] ?? ""
            let isAnswer =
                field.hasPrefix("Digest ") && field.contains("uri=\"/ws?x=1\"")
                && field.contains("username=\"user\"")
            return isAnswer ? nil : (401, ["WWW-Authenticate: Digest realm=\"a\", nonce=\"n\", qop=\"auth\""])
        }
        let recorder = ConnectionRecorder(.credential("user", "pass"))
        let task = try await self.open(URLRequest(url: server.url("/ws?x=1")), recorder)
        #expect(recorder.eventsOfTheTask.contains("challenge HTTPDigest") && heads.list.count == 2)
        task.cancel()
    }

    @Test func refusedCredentialIsAskedForAgain() async throws {
        let server = try await Self.server { _ in (401, ["WWW-Authenticate: Basic realm=\"a\""]) }
        var policies = Policies()
        policies.challenge = { challenge, answer in
            challenge.previousFailureCount < 2
                ? answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
                : answer(.performDefaultHandling, nil)
        }
        let recorder = ConnectionRecorder(policies)
        let (task, error) = try await self.fail(URLRequest(url: server.url()), recorder)
        #expect(error.handshakeStatusCode == 401 && recorder.log.count("challenge HTTPBasic") == 3)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 401)
        policies.challenge = { $1(.cancelAuthenticationChallenge, nil) }
        let cancelled = try await self.fail(URLRequest(url: server.url()), ConnectionRecorder(policies)).1
        #expect(cancelled.code == .cancelled)
    }

    /// A 503 may be that of a gateway that has not looked at the credential.
    @Test(arguments: [(403, 1), (503, 0)])
    func credentialIsStoredOnceItsServerHasAcceptedIt(_ status: Int, _ stored: Int) async throws {
        let server = try await Self.server { head in
            head.fields["Authorization"] == nil ? (401, ["WWW-Authenticate: Basic realm=\"a\""]) : (status, [])
        }
        let storage = URLCredentialStorage()
        var policies = Policies()
        policies.challenge = { _, answer in
            answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
        }
        let request = URLRequest(url: server.url())
        let recorder = ConnectionRecorder(policies)
        let (_, error) = try await self.fail(request, recorder) { $0.urlCredentialStorage = storage }
        #expect(error.handshakeStatusCode == status && storage.allCredentials.count == stored)
    }

    @Test func credentialOfTheURLIsTaken() async throws {
        let server = try await Self.server { head in
            head.fields["Authorization"] == "Basic dXNlcjpwYXNz" ? nil : (401, ["WWW-Authenticate: Basic realm=\"a\""])
        }
        let url = try #require(URL(string: "\(server.scheme)://user:pass@127.0.0.1:\(server.port)/"))
        let task = try await self.open(URLRequest(url: url))
        task.cancel()
    }

    // MARK: Cookies

    @Test func cookiesGoBothWays() async throws {
        let heads = Heads()
        let server = try await Self.server(heads, fields: [HTTPField("Set-Cookie", "got=open")]) { head in
            head.target == "/first" ? (302, ["Location: /second", "Set-Cookie: step=one"]) : nil
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let storage = try #require(session.configuration.httpCookieStorage)
        let mine = try #require(
            HTTPCookie(properties: [.name: "mine", .value: "1", .domain: "127.0.0.1", .path: "/"]))
        storage.setCookie(mine)
        let task = session.webSocketTask(with: server.url("/first"))
        task.resume()
        #expect(await recorder.log.has("open -"))
        #expect(heads.list.first?.fields["Cookie"] == "mine=1")
        let second = heads.list.last?.fields["Cookie"]?.split(separator: "; ").sorted()
        #expect(second == ["mine=1", "step=one"])
        #expect(Set(storage.cookies?.map(\.name) ?? []) == ["mine", "step", "got"])
        session.invalidateAndCancel()
    }

    // MARK: Extensions, TLS, metrics

    @Test func compressionIsOfferedIfRequested() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            _ = try await stream.accept(deflate: DeflatePolicy()).echo()
        }
        for offers in [false, true] {
            let session = URLSession.test()
            let task = session.webSocketTask(with: server.url())
            task.offersCompression = offers
            task.resume()
            let text = String(repeating: "again and again ", count: 1000)
            try await task.send(.string(text))
            #expect(WebSocketTaskTests.text(try await task.receive()) == text)
            let accepted = (task.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Sec-WebSocket-Extensions")
            #expect((accepted?.hasPrefix("permessage-deflate") == true) == offers && task.offersCompression == offers)
            session.invalidateAndCancel()
        }
    }

    private static func secureServer() async throws -> ConnectionServer {
        let context = try Certificates.server()
        return try await ConnectionServer { stream in
            try await stream.startSecureConnection(SecureSettings(context: context))
            try await WebSocketTaskTests.echo(stream)
        }
    }

    @Test func handshakeWorksOverTLS() async throws {
        let server = try await Self.secureServer()
        let recorder = ConnectionRecorder(.trusting)
        let task = try await self.open(URLRequest(url: server.url("/", scheme: "wss")), recorder)
        try await task.send(.string("secret"))
        #expect(WebSocketTaskTests.text(try await task.receive()) == "secret")
        task.cancel(with: .normalClosure, reason: nil)
        let transaction = try #require(try await recorder.end().metrics?.transactionMetrics.first)
        #expect(recorder.eventsOfTheTask.prefix(3) == ["created", "session challenge ServerTrust", "open -"])
        #expect(transaction.negotiatedTLSProtocolVersion == .TLSv13)
        #expect(transaction.secureConnectionStartDate != nil && transaction.secureConnectionEndDate != nil)
    }

    @Test func untrustedServerFailsTheHandshake() async throws {
        let server = try await Self.secureServer()
        let request = URLRequest(url: server.url("/", scheme: "wss"))
        #expect(try await self.fail(request).1.code == .serverCertificateHasUnknownRoot)
        var policies = Policies()
        policies.sessionChallenge = { $1(.cancelAuthenticationChallenge, nil) }
        #expect(try await self.fail(request, ConnectionRecorder(policies)).1.code == .cancelled)
    }

    @Test func handshakeIsMeasured() async throws {
        let server = try await Self.server { _ in nil }
        let recorder = ConnectionRecorder()
        let task = try await self.open(URLRequest(url: server.url()), recorder)
        task.cancel(with: .normalClosure, reason: nil)
        let metrics = try #require(try await recorder.end().metrics)
        let transaction = try #require(metrics.transactionMetrics.first)
        let dates = [
            transaction.fetchStartDate, transaction.connectStartDate, transaction.connectEndDate,
            transaction.requestStartDate, transaction.requestEndDate, transaction.responseStartDate,
            transaction.responseEndDate,
        ]
        #expect(!dates.contains(nil) && dates.compactMap(\.self) == dates.compactMap(\.self).sorted())
        #expect(transaction.domainLookupStartDate == nil && transaction.remoteAddress == "127.0.0.1")
        let variant = ConnectionVariant.current
        #expect((transaction.secureConnectionStartDate != nil) == variant.isSecure)
        #expect((transaction.remotePort == server.port) == (variant.route == .direct))
        #expect(transaction.localPort != nil && !transaction.isReusedConnection)
        #expect(transaction.countOfRequestHeaderBytesSent > 100 && transaction.countOfResponseHeaderBytesReceived > 80)
        #expect(transaction.networkProtocolName == "http/1.1" && transaction.resourceFetchType == .networkLoad)
    }
}
