import Foundation
import Synchronization
import TLSEngine
import TestSupport
import Testing
import URLLoading

extension ConnectionVariant {
    /// Calls `body` with a new session, and checks that its connections used the variant's route.
    fileprivate func withSession(
        _ delegate: (any URLSessionDelegate)? = nil, _ body: (URLSession) async throws -> Void
    ) async throws {
        let authority = Data(try Certificates.authority().pem.utf8)
        let proxy = self.route == .direct ? nil : try await RelayProxy()
        let session = URLSession.test(delegate) {
            $0.assumesHTTP2 = self.version == .http2
            $0.certificateAuthorities = authority
            if let proxy { $0.connectionProxyDictionary = self.settings(proxy.port) }
        }
        try await body(session)
        session.invalidateAndCancel()
        if let proxy { #expect(proxy.tunnels > 0) }
    }
}

@Suite("The variant of this run", .loading, .timeLimit(.minutes(20)))
struct CurrentVariantTests {
    @Test func sessionsOfTestsUseIt() async throws {
        let (variant, server) = (ConnectionVariant.current, try await WebServer(["/": .text("hello")]))
        let notes = try await DataRecorder().run(server.url())
        let transaction = try #require(notes.metrics?.transactionMetrics.first)
        #expect(notes.data == Data("hello".utf8))
        #expect(transaction.networkProtocolName == variant.version.rawValue)
        #expect((transaction.negotiatedTLSProtocolVersion != nil) == variant.isSecure)
        #expect(transaction.isProxyConnection == (variant.route != .direct))
        let proxy = variant.route == .direct ? nil : try RelayProxy.current.get()
        #expect(transaction.remotePort == proxy?.port ?? server.port && transaction.remoteAddress == "127.0.0.1")
    }
}

@Suite(
    "Loading over HTTP/1.1 and HTTP/2, direct and through proxies, plain and by TLS", .loading, .choosesItsConnections,
    .timeLimit(.minutes(20))
)
struct ConnectionVariantTests {
    @Test(arguments: ConnectionVariant.all)
    func dataTasksShareAConnection(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/": .text("hello", ["X-A: b"])])
        let recorder = DataRecorder()
        try await variant.withSession(recorder) { session async throws in
            for _ in 0..<2 { #expect(try await session.load(server.url()).text == "hello") }
            session.dataTask(with: server.url()).resume()
            let notes = try await recorder.end()
            #expect(notes.data == Data("hello".utf8) && server.connections == 1)
            let events = ["created", "response 200", "data", "will cache", "metrics", "complete"]
            #expect(recorder.eventsOfTheTask.suffix(events.count) == events[...])
            let response = try #require(notes.response as? HTTPURLResponse)
            #expect(response.value(forHTTPHeaderField: "x-a") == "b" && response.expectedContentLength == 5)
            let transaction = try #require(notes.metrics?.transactionMetrics.last)
            #expect(transaction.networkProtocolName == variant.version.rawValue && transaction.isReusedConnection)
            #expect(
                transaction.countOfResponseBodyBytesReceived == 5 && transaction.countOfResponseHeaderBytesReceived > 0)
            #expect(transaction.requestStartDate != nil && transaction.responseEndDate != nil)
            #expect(server.requests.last?["Host"] == "127.0.0.1:\(server.port)")
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func contentWithoutALengthAndWithTrailersIsComplete(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server([
            "/chunked": .chunked(["a", "bc", "def"], trailers: ["Checksum: 1"]), "/none": .head(204),
            "/close": Answer.head(200).then(.send(Array("until the end".utf8)), .close),
        ])
        try await variant.withSession { session async throws in
            #expect(try await session.load(server.url("/chunked")).text == "abcdef")
            #expect(try await session.load(server.url("/none")).status == 204)
            #expect(try await session.load(server.url("/close")).text == "until the end")
            #expect(try await session.load(.to(server.url("/chunked"), "HEAD")).data?.isEmpty == true)
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func uploadsSendDataFilesAndStreams(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server()
        server.on("/") { .response(200, [], $0.body) }
        try await variant.withSession { session async throws in
            let bytes = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 >> 2) })
            let (echo, _) = try await session.upload(for: .to(server.url(), "POST"), from: bytes)
            #expect(echo == bytes && server.requests.last?["Content-Length"] == "600000")
            let folder = try TemporaryFolder()
            let file = folder.url.appendingPathComponent("f")
            try bytes.write(to: file)
            let (other, _) = try await session.upload(for: .to(server.url(), "PUT"), fromFile: file)
            #expect(other == bytes)
            var request = URLRequest.to(server.url(), "POST")
            request.httpBodyStream = InputStream(data: bytes)
            let streamed = try await session.load(request)
            #expect(streamed.data == bytes && server.requests.last?["Content-Length"] == nil)
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func downloadIsResumedAtItsOffset(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/": ResumedDownloadTests.half()])
        let recorder = DataRecorder()
        try await variant.withSession(recorder) { session async throws in
            let data = try #require(try await ResumedDownloadTests.resumeData(server, session))
            server.on("/") { ResumedDownloadTests.part($0) }
            session.downloadTask(withResumeData: data).resume()
            let notes = try await recorder.end()
            #expect(notes.fileContent == Data(ResumedDownloadTests.whole.utf8) && notes.error == nil)
            #expect(notes.resumes.map(\.0) == [50_000])
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func redirectsWith307And308KeepTheirMethod(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/see": .redirect(303, to: "/"), "/keep": .redirect(307, to: "/")])
        server.on("/") { .text("\($0.method) \($0.text)") }
        try await variant.withSession { session async throws in
            #expect(try await session.load(.to(server.url("/see"), "POST", body: "b")).text == "GET ")
            #expect(try await session.load(.to(server.url("/keep"), "POST", body: "b")).text == "POST b")
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func challengeIsAnsweredByACredential(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server()
        server.on("/") { request in
            request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let recorder = DataRecorder(.credential("user", "passwd", .forSession))
        try await variant.withSession(recorder) { session async throws in
            session.dataTask(with: server.url()).resume()
            #expect(try await recorder.end().data == Data("in".utf8) && server.requests.count == 2)
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func cookiesAreStoredAndSent(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server([
            "/set": .text("", ["Set-Cookie: a=1", "Set-Cookie: b=2"]), "/": .text(""),
        ])
        try await variant.withSession { session async throws in
            _ = try await session.load(server.url("/set"))
            _ = try await session.load(server.url())
            #expect(server.requests.last?["Cookie"].map { Set($0.split(separator: "; ")) } == ["a=1", "b=2"])
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func cacheAnswersAndValidates(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/fresh": .text("fresh", ["Cache-Control: max-age=600"])])
        server.on("/stale") { request in
            request["If-None-Match"] == "\"v1\""
                ? .head(304, ["ETag: \"v1\""]) : .text("stale", ["ETag: \"v1\"", "Cache-Control: max-age=0"])
        }
        try await variant.withSession { session async throws in
            for path in ["/fresh", "/stale"] {
                for _ in 0..<2 {
                    let loaded = try await session.load(server.url(path))
                    #expect(loaded.status == 200 && loaded.text == String(path.dropFirst()))
                }
            }
            #expect(server.requests.map(\.path) == ["/fresh", "/stale", "/stale"])
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func suspendedTaskResumes(_ variant: ConnectionVariant) async throws {
        let gate = Gate()
        let body = String(repeating: "x", count: 700_000)
        let server = try await variant.server(["/": .text(body).after(gate), "/other": .text("other")])
        try await variant.withSession { session async throws in
            let outcome = Outcome<Loaded>()
            let task = session.dataTask(with: server.url()) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }
            task.resume()
            await server.hasReceived(1)
            task.suspend()
            // A session's tasks are handled in order: the task is suspended before this load begins.
            #expect(try await session.load(server.url("/other")).text == "other")
            gate.open()
            #expect(try await session.load(server.url("/other")).text == "other")
            #expect(task.state == .suspended)
            task.resume()
            #expect(try await outcome.value().text == body)
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func silentServerTimesOut(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/": .hang, "/ready": .text("ready")])
        try await variant.withSession { session async throws in
            // Opens the connection, which may take longer than the timeout.
            #expect(try await session.load(server.url("/ready")).text == "ready")
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 0.2
            #expect(try await session.load(request).code == .timedOut)
        }
    }

    @Test(arguments: ConnectionVariant.all)
    func contentThatIsCutIsAnError(_ variant: ConnectionVariant) async throws {
        let server = try await variant.server(["/": .text("hello").broken(at: 65, by: .reset)])
        try await variant.withSession { session async throws in
            #expect(try await session.load(server.url()).code == .networkConnectionLost)
        }
    }

    // MARK: Negotiation

    @Test func secureServerChoosesHTTP2() async throws {
        let server = try await WebServer(
            tls: Certificates.server { $0.applicationProtocols = ["h2", "http/1.1"] }, ["/": .text("hello")])
        let recorder = DataRecorder(.trusting)
        let session = URLSession.test(recorder)
        let texts = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<8 { group.addTask { try await session.load(server.url()).text } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "hello", count: 8) && server.connections == 1)
        #expect(recorder.log.count("session challenge ServerTrust") == 1)
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        let transaction = try #require(notes.metrics?.transactionMetrics.last)
        #expect(transaction.networkProtocolName == "h2" && transaction.negotiatedTLSProtocolVersion == .TLSv13)
        session.invalidateAndCancel()
    }

    @Test func clientCertificateIsSentBeforeHTTP2() async throws {
        let server = try await WebServer(
            tls: Certificates.server {
                $0.peerVerification = .required
                $0.applicationProtocols = ["h2"]
            }, ["/": .text("hello")])
        var policies = Policies.trusting
        let identity = try Certificates.clientIdentity()
        policies.sessionChallenge = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                return Policies.trust(challenge, answer)
            }
            answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        }
        let session = URLSession.test(DataRecorder(policies))
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
    }

    /// An upgrade exists in HTTP/1.1 only (RFC 9113 §8.6).
    @Test func requestForAnUpgradeOffersHTTP1Only() async throws {
        let server = try await WebServer(
            tls: Certificates.server { $0.applicationProtocols = ["h2", "http/1.1"] }, ["/": .text("hello")])
        let session = URLSession.test(DataRecorder(.trusting))
        let fields = ["Upgrade": "echo", "Connection": "Upgrade"]
        #expect(try await session.load(.to(server.url(), "GET", fields)).text == "hello")
        #expect(server.metadata(0)?.applicationProtocol == "http/1.1")
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.metadata(1)?.applicationProtocol == "h2")
        session.invalidateAndCancel()
    }

    /// RFC 9113 §7: a server may require HTTP/1.1 for one resource, for its authentication for example.
    @Test func requestThatRequiresHTTP11IsSentAgainOverIt() async throws {
        let server = try await WebServer(tls: Certificates.server { $0.applicationProtocols = ["h2", "http/1.1"] })
        server.on("/") { Answer([.requireHTTP11]).then(.text($0.text)) }
        let session = URLSession.test(DataRecorder(.trusting))
        #expect(try await session.load(.to(server.url(), "POST", body: "once")).text == "once")
        #expect((0..<2).map { server.metadata($0)?.applicationProtocol } == ["h2", "http/1.1"])
        session.invalidateAndCancel()
    }

    @Test func serverThatRequiresHTTP11WithoutSpeakingItIsAnError() async throws {
        let server = try await WebServer(
            tls: Certificates.server { $0.applicationProtocols = ["h2"] }, ["/": Answer([.requireHTTP11])])
        let session = URLSession.test(DataRecorder(.trusting))
        #expect(try await session.load(server.url()).code == .secureConnectionFailed && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    /// RFC 9113 §8.7: the server has not processed the request. A stream can be read once, so that another is needed.
    @Test(arguments: [1, 3])
    func refusedUploadOfAStreamAsksForAnotherStream(_ refusals: Int) async throws {
        let server = try await WebServer()
        let requests = Atomic(0)
        server.on("/") { request in
            requests.add(1, ordering: .relaxed).newValue <= refusals ? Answer([.refuse]) : .text(request.text)
        }
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data("again".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.assumesHTTP2 = true }
        session.uploadTask(withStreamedRequest: .to(server.url(), "POST")).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("again".utf8))
        #expect(recorder.log.count("needs body") == refusals + 1)
        session.invalidateAndCancel()
    }

    /// RFC 9112 §9.3.1: a server may close an idle connection just as a request arrives.
    @Test func idempotentUploadOfAStreamIsRepeatedWhenItsReusedConnectionIsLost() async throws {
        let server = try await WebServer()
        let uploads = Atomic(0)
        server.on("/") { _ in .text("first") }
        server.on("/upload") { request in
            uploads.add(1, ordering: .relaxed).newValue == 1 ? Answer([.reset]) : .text(request.text)
        }
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data("again".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        _ = try await session.data(from: server.url())
        session.uploadTask(withStreamedRequest: .to(server.url("/upload"), "PUT")).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("again".utf8))
        #expect(recorder.log.count("needs body") == 2 && server.connections == 2)
        session.invalidateAndCancel()
    }

    /// The server may have processed it.
    @Test func otherUploadOfAStreamFailsWhenItsReusedConnectionIsLost() async throws {
        let server = try await WebServer()
        server.on("/") { _ in .text("first") }
        server.on("/upload") { _ in Answer([.close]) }
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data("once".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        for _ in 0..<2 { _ = try await session.data(from: server.url()) }
        session.uploadTask(withStreamedRequest: .to(server.url("/upload"), "POST")).resume()
        #expect((try await recorder.end().error as? URLError)?.code == .networkConnectionLost)
        #expect(recorder.log.count("needs body") == 1)
        session.invalidateAndCancel()
    }

    @Test func uploadOfAStreamThatIsAlwaysRefusedFails() async throws {
        let server = try await WebServer(["/": Answer([.refuse])])
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data("again".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.assumesHTTP2 = true }
        session.uploadTask(withStreamedRequest: .to(server.url(), "POST")).resume()
        #expect((try await recorder.end().error as? URLError)?.code == .networkConnectionLost)
        #expect(server.requests.count == 6)
        session.invalidateAndCancel()
    }
}
