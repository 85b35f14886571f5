import Foundation
import TLSEngine
import Testing
import URLLoading

extension URLSession {
    /// A session that speaks only this version with servers of `http` URLs.
    static func test(
        _ version: WebProtocol, _ delegate: (any URLSessionDelegate)? = nil,
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        .test(delegate) {
            $0.assumesHTTP2 = version == .http2
            change($0)
        }
    }
}

@Suite("Loading over HTTP/1.1 and HTTP/2", .loading, .timeLimit(.minutes(20)))
struct ProtocolVersionTests {
    @Test(arguments: WebProtocol.allCases)
    func dataTasksShareAConnection(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/": .text("hello", ["X-A: b"])])
        let recorder = DataRecorder()
        let session = URLSession.test(version, recorder)
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "hello") }
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("hello".utf8) && server.connections == 1)
        let events = ["created", "response 200", "data", "will cache", "metrics", "complete"]
        #expect(recorder.eventsOfTheTask.suffix(events.count) == events[...])
        let response = try #require(notes.response as? HTTPURLResponse)
        #expect(response.value(forHTTPHeaderField: "x-a") == "b" && response.expectedContentLength == 5)
        let transaction = try #require(notes.metrics?.transactionMetrics.last)
        #expect(transaction.networkProtocolName == version.rawValue && transaction.isReusedConnection)
        #expect(transaction.countOfResponseBodyBytesReceived == 5 && transaction.countOfResponseHeaderBytesReceived > 0)
        #expect(transaction.requestStartDate != nil && transaction.responseEndDate != nil)
        #expect(server.requests.last?["Host"] == "127.0.0.1:\(server.port)")
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func contentWithoutALengthAndTrailersIsWhole(_ version: WebProtocol) async throws {
        let server = try await WebServer([
            "/chunked": .chunked(["a", "bc", "def"], trailers: ["Checksum: 1"]), "/none": .head(204),
            "/close": Answer.head(200).then(.send(Array("until the end".utf8)), .close),
        ])
        let session = URLSession.test(version)
        #expect(try await session.load(server.url("/chunked")).text == "abcdef")
        #expect(try await session.load(server.url("/none")).status == 204)
        #expect(try await session.load(server.url("/close")).text == "until the end")
        #expect(try await session.load(.to(server.url("/chunked"), "HEAD")).data?.isEmpty == true)
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func uploadsSendDataFilesAndStreams(_ version: WebProtocol) async throws {
        let server = try await WebServer()
        server.on("/") { .response(200, [], $0.body) }
        let session = URLSession.test(version)
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
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func downloadGoesOnWhereItEnded(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/": ResumedDownloadTests.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(version, recorder)
        let data = try #require(try await ResumedDownloadTests.resumeData(server, session))
        server.on("/") { ResumedDownloadTests.part($0) }
        session.downloadTask(withResumeData: data).resume()
        let notes = try await recorder.end()
        #expect(notes.fileContent == Data(ResumedDownloadTests.whole.utf8) && notes.error == nil)
        #expect(notes.resumes.map(\.0) == [50_000])
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func redirectsKeepTheirMethodWhereTheyMust(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/see": .redirect(303, to: "/"), "/keep": .redirect(307, to: "/")])
        server.on("/") { .text("\($0.method) \($0.text)") }
        let session = URLSession.test(version)
        #expect(try await session.load(.to(server.url("/see"), "POST", body: "b")).text == "GET ")
        #expect(try await session.load(.to(server.url("/keep"), "POST", body: "b")).text == "POST b")
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func challengeIsAnsweredByACredential(_ version: WebProtocol) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let recorder = DataRecorder(.credential("user", "passwd", .forSession))
        let session = URLSession.test(version, recorder)
        session.dataTask(with: server.url()).resume()
        #expect(try await recorder.end().data == Data("in".utf8) && server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func cookiesAreStoredAndSent(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/set": .text("", ["Set-Cookie: a=1", "Set-Cookie: b=2"]), "/": .text("")])
        let session = URLSession.test(version)
        _ = try await session.load(server.url("/set"))
        _ = try await session.load(server.url())
        #expect(server.requests.last?["Cookie"].map { Set($0.split(separator: "; ")) } == ["a=1", "b=2"])
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func cacheAnswersAndValidates(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/fresh": .text("fresh", ["Cache-Control: max-age=600"])])
        server.on("/stale") { request in
            request["If-None-Match"] == "\"v1\""
                ? .head(304, ["ETag: \"v1\""]) : .text("stale", ["ETag: \"v1\"", "Cache-Control: max-age=0"])
        }
        let session = URLSession.test(version)
        for path in ["/fresh", "/stale"] {
            for _ in 0..<2 {
                let loaded = try await session.load(server.url(path))
                #expect(loaded.status == 200 && loaded.text == String(path.dropFirst()))
            }
        }
        #expect(server.requests.map(\.path) == ["/fresh", "/stale", "/stale"])
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func suspendedTaskGoesOn(_ version: WebProtocol) async throws {
        let gate = Gate()
        let body = String(repeating: "x", count: 700_000)
        let server = try await WebServer(["/": .text(body).after(gate), "/other": .text("other")])
        let session = URLSession.test(version)
        let outcome = Outcome<Loaded>()
        let task = session.dataTask(with: server.url()) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }
        task.resume()
        await server.hasHeard(1)
        task.suspend()
        // What a session is asked is done in order: behind this load the task is suspended.
        #expect(try await session.load(server.url("/other")).text == "other")
        gate.open()
        #expect(try await session.load(server.url("/other")).text == "other")
        #expect(task.state == .suspended)
        task.resume()
        #expect(try await outcome.value().text == body)
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func silentServerTimesOut(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test(version) { $0.timeoutIntervalForRequest = 0.2 }
        #expect(try await session.load(server.url()).code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test(arguments: WebProtocol.allCases)
    func contentThatIsCutIsAnError(_ version: WebProtocol) async throws {
        let server = try await WebServer(["/": .text("hello").broken(at: 65, by: .reset)])
        let session = URLSession.test(version)
        #expect(try await session.load(server.url()).code == .networkConnectionLost)
        session.invalidateAndCancel()
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

    /// RFC 9113 §7: a resource may exist in HTTP/1.1 only, for its authentication for example.
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
}
