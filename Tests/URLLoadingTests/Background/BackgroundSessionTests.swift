import BackgroundTransfers
import Foundation
import Testing
import URLLoading

@Suite("Background sessions", .loading, .choosesItsConnections, .onlyWithHTTP11, .timeLimit(.minutes(20)))
struct BackgroundSessionTests {
    @Test func downloadIsDeliveredWithItsFile() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        let task = session.downloadTask(with: server.url())
        task.taskDescription = "first"
        #expect(task.taskIdentifier == 1 && server.requests.isEmpty)
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        let notes = recorder.notes
        #expect(notes.errors.isEmpty && notes.files[1] == Data("hello".utf8) && notes.written.last == 5)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200 && task.state == .completed)
        #expect(task.countOfBytesReceived == 5 && notes.metrics == 1)
        #expect(recorder.log.names.suffix(4) == ["written", "file 1", "metrics", "completed 1"])
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
        #expect(!recorder.log.names.contains("events"))
    }

    @Test func proxiesAreThoseOfTheProgramsEnvironment() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let (recorder, proxy) = (BackgroundRecorder(), try await RelayProxy())
        let session = try await BackgroundDaemon().session(recorder) {
            $0.connectionProxyDictionary = nil
            $0.proxyVariables = ["http_proxy": "http://127.0.0.1:\(proxy.port)"]
        }
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8) && proxy.tunnels == 1)
        session.invalidateAndCancel()
    }

    @Test func uploadSendsACopyOfItsFile() async throws {
        let server = try await WebServer()
        server.on("/") { .text("got \($0.bodyCount)", status: 201) }
        let (recorder, folder) = (BackgroundRecorder(), try TemporaryFolder())
        let session = try await BackgroundDaemon().session(recorder)
        let file = folder.url.appending(path: "body")
        try Data("the body".utf8).write(to: file)
        let task = session.uploadTask(with: .to(server.url(), "PUT"), fromFile: file)
        try Data("something else".utf8).write(to: file)
        try FileManager.default.removeItem(at: file)
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(server.requests.map(\.text) == ["the body"] && server.requests.first?["Content-Length"] == "8")
        #expect(recorder.notes.data[1] == Data("got 8".utf8) && recorder.notes.sent == 8)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 201 && task.countOfBytesSent == 8)
        session.invalidateAndCancel()
    }

    @Test func laterSessionGetsTheMessagesThatItMissed() async throws {
        let server = try await WebServer(["/": .text("hello"), "/none": .text("none", status: 404), "/held": .hang])
        let daemon = try await BackgroundDaemon()
        let watch = try await DaemonWatch(daemon.folders)
        let program = try daemon.program()
        for (identifier, path) in [(1, "/"), (2, "/none"), (3, "/held")] {
            var transfer = TransferRecord(
                identifier: identifier, kind: .download, request: TransferRequest(url: server.url(path).absoluteString))
            transfer.attributes.label = "task \(identifier)"
            #expect(program.perform(.create(transfer)) == .success(.done))
            #expect(program.perform(.resume(task: identifier)) == .success(.done))
        }
        program.close()
        for task in 1...2 { #expect(await watch.log.has("removed \(task)")) }
        let recorder = BackgroundRecorder()
        let session = daemon.session(recorder)
        #expect(await session.allTasks.map(\.taskDescription) == ["task 3"])
        #expect(await recorder.log.has("events"))
        #expect(recorder.notes.files == [1: Data("hello".utf8), 2: Data("none".utf8)])
        #expect(Set(recorder.notes.completed.map(\.taskDescription)) == ["task 1", "task 2"])
        #expect(session.downloadTask(with: server.url()).taskIdentifier == 4)
        session.invalidateAndCancel()
        #expect(await recorder.log.has("invalid"))
        #expect(recorder.notes.errors[3]?.code == .cancelled && recorder.log.count("events") == 1)
        // Nothing is left for another session.
        let other = BackgroundRecorder()
        let last = daemon.session(other)
        #expect(await last.allTasks.isEmpty)
        last.invalidateAndCancel()
        #expect(await other.log.has("invalid"))
        #expect(other.log.names == ["invalid"])
    }

    @Test func secondSessionOfAnIdentifierIsRefusedUntilTheFirstIsInvalid() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let (daemon, first, second) = (try await BackgroundDaemon(), BackgroundRecorder(), BackgroundRecorder())
        let owner = daemon.session(first)
        let refused = daemon.session(second)
        refused.downloadTask(with: server.url()).resume()
        #expect(await second.log.has("completed 1"))
        #expect(second.notes.errors[1]?.code == .backgroundSessionInUseByAnotherProcess)
        owner.invalidateAndCancel()
        #expect(await first.log.has("invalid"))
        // The daemon hears of it a little later.
        let watch = try await DaemonWatch(daemon.folders)
        await watch.answered()
        refused.downloadTask(with: server.url()).resume()
        #expect(await second.log.has("completed 2"))
        #expect(second.notes.files[2] == Data("hello".utf8))
        refused.invalidateAndCancel()
    }

    @Test func redirectsAreFollowedWithoutAsking() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("there")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("there".utf8) && !recorder.log.names.contains("redirect"))
        session.invalidateAndCancel()
    }

    @Test func lostNetworkIsTriedAgain() async throws {
        let server = try await WebServer()
        server.on("/", oneByOne: [.reset, .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8) && recorder.log.count("completed 1") == 1)
        session.invalidateAndCancel()
    }

    @Test func transferThatTakesTooLongTimesOut() async throws {
        let closed = try ClosedPort()
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder) { $0.timeoutIntervalForResource = 0.2 }
        session.downloadTask(with: closed.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.errors[1]?.code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test func challengeIsAnsweredByTheProgram() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == "Basic YWRhOnNlY3JldA=="
                ? .text("hello") : .text("who?", ["WWW-Authenticate: Basic realm=\"The cellar\""], status: 401)
        }
        let recorder = BackgroundRecorder(
            credential: URLCredential(user: "ada", password: "secret", persistence: .none))
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8))
        let space = try #require(recorder.notes.challenges.first?.protectionSpace)
        #expect(space.realm == "The cellar" && space.host == "127.0.0.1" && space.port == server.port)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ("", "ada", "stored"), ("mary@", "mary", "stored"), ("eve@", "eve", nil), ("eve:word@", "eve", "word"),
    ])
    func challengeProposesTheUserOfTheURL(_ account: String, _ user: String, _ password: String?) async throws {
        let server = try await WebServer(["/": .text("who?", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)])
        let storage = URLCredentialStorage()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        for user in ["ada", "mary"] {
            storage.set(URLCredential(user: user, password: "stored", persistence: .forSession), for: space)
        }
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder) { $0.urlCredentialStorage = storage }
        session.downloadTask(with: try #require(URL(string: "http://\(account)127.0.0.1:\(server.port)/"))).resume()
        #expect(await recorder.log.has("completed 1"))
        let proposed = try #require(recorder.notes.challenges.first?.proposedCredential)
        #expect(proposed.user == user && proposed.password == password)
        session.invalidateAndCancel()
    }

    @Test func challengeWithoutACredentialEndsWithItsResponse() async throws {
        let server = try await WebServer([
            "/": .text("who?", ["WWW-Authenticate: Basic realm=\"The cellar\""], status: 401)
        ])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        let task = session.downloadTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        #expect((task.response as? HTTPURLResponse)?.statusCode == 401 && recorder.log.count("challenge 1") == 1)
        session.invalidateAndCancel()
    }

    /// A server that offers Digest and Basic, and takes Basic.
    private static func server(offeringDigest: Bool = true) async throws -> WebServer {
        let server = try await WebServer()
        let digest = offeringDigest ? ["WWW-Authenticate: Digest realm=\"d\", qop=\"auth\", nonce=\"n\""] : []
        server.on("/") { request in
            request["Authorization"] == "Basic YWRhOnNlY3JldA=="
                ? .text("hello") : .text("who?", digest + ["WWW-Authenticate: Basic realm=\"b\""], status: 401)
        }
        return server
    }

    @Test func rejectedSchemeIsFollowedByTheNext() async throws {
        let server = try await Self.server()
        let recorder = BackgroundRecorder(decide: { challenge in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
                return (.rejectProtectionSpace, nil)
            }
            let password = challenge.previousFailureCount < 2 ? "wrong" : "secret"
            return (.useCredential, URLCredential(user: "ada", password: password, persistence: .none))
        })
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8))
        let asked = recorder.notes.challenges
        #expect(asked.map(\.protectionSpace.realm) == ["d", "b", "b", "b"])
        #expect(asked.map(\.previousFailureCount) == [0, 0, 1, 2])
        let responses = asked.map { $0.failureResponse as? HTTPURLResponse }
        #expect(responses.allSatisfy { $0?.statusCode == 401 && $0?.url == server.url() })
        session.invalidateAndCancel()
    }

    @Test func answerWithoutACredentialIsNotTheProposedOne() async throws {
        let server = try await Self.server()
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        let url = try #require(URL(string: "http://ada:secret@127.0.0.1:\(server.port)/"))
        let task = session.downloadTask(with: url)
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        #expect((task.response as? HTTPURLResponse)?.statusCode == 401)
        #expect(server.requests.map { $0["Authorization"] }.allSatisfy { $0 == nil })
        session.invalidateAndCancel()
    }

    /// The program has no credential, but the daemon knows the account of the proxy.
    @Test(.onlyWithHTTP11) func accountOfAProxyIsUsed() async throws {
        let proxy = try await WebServer()
        proxy.on("http://origin.example/") { request in
            request["Proxy-Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("through") : .text("who?", ["Proxy-Authenticate: Basic realm=\"p\""], status: 407)
        }
        let recorder = BackgroundRecorder(decide: { _ in (.performDefaultHandling, nil) })
        let session = try await BackgroundDaemon().session(recorder) {
            $0.connectionProxyDictionary = nil
            $0.proxyVariables = ["http_proxy": "http://user:passwd@127.0.0.1:\(proxy.port)"]
        }
        session.downloadTask(with: try #require(URL(string: "http://origin.example/"))).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("through".utf8) && recorder.notes.challenges.count == 1)
        session.invalidateAndCancel()
    }

    @Test func credentialIsUsedForItsTransferAlone() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("who?", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .redirect(to: "/next")
        }
        server.on("/next", BasicAuthenticationTests.guarded())
        let recorder = BackgroundRecorder(
            credential: URLCredential(user: "user", password: "passwd", persistence: .none))
        let session = try await BackgroundDaemon().session(recorder)
        for number in 1...2 {
            session.downloadTask(with: server.url()).resume()
            #expect(await recorder.log.has("completed \(number)"))
            // The target of the redirect is in the same protection space.
            #expect(recorder.notes.files[number] == Data("in".utf8))
            #expect(recorder.notes.challenges.count == number)
        }
        session.invalidateAndCancel()
    }

    /// The server of the first URL redirects to another one, which asks as well.
    @Test func credentialIsNotSentToTheServerOfARedirect() async throws {
        let other = try await Self.server(offeringDigest: false)
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("who?", ["WWW-Authenticate: Basic realm=\"b\""], status: 401)
                : .redirect(to: other.url().absoluteString)
        }
        let recorder = BackgroundRecorder(decide: { challenge in
            guard challenge.protectionSpace.port == server.port else { return (.cancelAuthenticationChallenge, nil) }
            return (.useCredential, URLCredential(user: "ada", password: "secret", persistence: .none))
        })
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.challenges.map(\.protectionSpace.port) == [server.port, other.port])
        #expect(!other.requests.isEmpty && other.requests.allSatisfy { $0["Authorization"] == nil })
        session.invalidateAndCancel()
    }

    @Test func delayedRequestIsContinuedReplacedOrCancelled() async throws {
        let server = try await WebServer(["/": .text("old"), "/new": .text("new")])
        let replacement = URLRequest(url: server.url("/new"))
        let answers: [(URLSession.DelayedRequestDisposition, URLRequest?, String?)] = [
            (.continueLoading, nil, "old"), (.useNewRequest, replacement, "new"), (.cancel, nil, nil),
        ]
        let daemon = try await BackgroundDaemon()
        for (disposition, request, content) in answers {
            let recorder = BackgroundRecorder(delayed: { _ in (disposition, request) })
            let session = daemon.session(recorder, "delayed \(disposition.rawValue)")
            let task = session.downloadTask(with: server.url())
            task.earliestBeginDate = Date(timeIntervalSinceNow: 0.05)
            task.resume()
            #expect(await recorder.log.has("completed 1"))
            #expect(recorder.notes.files[1].map { String(decoding: $0, as: UTF8.self) } == content)
            #expect(recorder.log.names.first == "delayed 1" && recorder.log.count("delayed 1") == 1)
            #expect(recorder.notes.errors[1]?.code == (content == nil ? .cancelled : nil))
            session.invalidateAndCancel()
        }
    }

    @Test func delayedRequestIsReplacedAsynchronously() async throws {
        let server = try await WebServer(["/": .text("old"), "/new": .text("new")])
        let delegate = AsyncBackgroundDelegate(replacement: server.url("/new"))
        let session = try await BackgroundDaemon().session(delegate)
        let task = session.downloadTask(with: server.url())
        task.earliestBeginDate = Date()
        task.resume()
        #expect(await delegate.log.has("completed"))
        #expect(delegate.log.names == ["delayed", "new", "completed"])
        session.invalidateAndCancel()
    }

    @Test func cancelledDownloadIsResumedFromItsData() async throws {
        let server = try await WebServer(["/": ResumedDownloadTests.half()])
        let daemon = try await BackgroundDaemon()
        let recorder = BackgroundRecorder()
        let session = daemon.session(recorder)
        let task = session.downloadTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("written"))
        let data = try #require(await task.cancelByProducingResumeData())
        #expect(await recorder.log.has("completed 1"))
        #expect(
            recorder.notes.errors[1]?.code == .cancelled && recorder.notes.errors[1]?.downloadTaskResumeData == data)
        server.on("/") { ResumedDownloadTests.part($0) }
        session.downloadTask(withResumeData: data).resume()
        #expect(await recorder.log.has("completed 2"))
        #expect(recorder.notes.files[2] == Data(ResumedDownloadTests.whole.utf8))
        #expect(server.requests.last?["Range"]?.hasPrefix("bytes=") == true)
        session.invalidateAndCancel()
    }

    @Test func suspendedTransferGoesOnWhenItIsResumed() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        let task = session.downloadTask(with: server.url())
        task.resume()
        task.suspend()
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func dataTaskIsLoadedByTheProgramItself() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        session.dataTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.data[1] == Data("hello".utf8))
        session.invalidateAndCancel()
    }
}
