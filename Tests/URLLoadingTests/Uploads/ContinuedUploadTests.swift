import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Continued uploads", .loading, .timeLimit(.minutes(20)))
struct ContinuedUploadTests {
    private static let content = InterruptedUpload.content

    @Test func uploadContinuesFromTheServersOffset() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 70_000))
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("up")
        try Self.content.write(to: file)
        let task = upload.session.uploadTask(with: upload.request, fromFile: file)
        task.resume()
        let notes = try await upload.recorder.end()
        #expect(notes.error == nil && notes.data == Data("done".utf8))
        #expect(upload.parts == ["HEAD", "PATCH 70000"])
        let part = try #require(upload.server.requests("/part").last)
        #expect(Data(part.body) == Self.content.dropFirst(70_000))
        #expect(part["Content-Type"] == "application/partial-upload" && part["Upload-Complete"] == "?1")
        #expect(part["Content-Length"] == "130000" && part["X-Own"] == "1")
        #expect(task.countOfBytesSent == 200_000 && task.countOfBytesExpectedToSend == 200_000)
        #expect((task.response as? HTTPURLResponse)?.url == upload.server.url("/part"))
        #expect(task.originalRequest?.url == upload.server.url("/up") && task.currentRequest?.httpMethod == "PATCH")
    }

    @Test func creationAnnouncesItsLengthAndVersion() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 0))
        upload.server.on("/plain", .text("taken"))
        let (_, response) = try await upload.session.upload(
            for: .to(upload.server.url("/plain"), "PUT"), from: Self.content)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let heard = try #require(upload.server.requests("/plain").last)
        #expect(heard["Upload-Complete"] == "?1" && heard["Upload-Length"] == "200000")
        #expect(heard["Upload-Draft-Interop-Version"] == "9" && heard["Upload-Offset"] == nil)
        #expect(Data(heard.body) == Self.content)
    }

    @Test func countsOfAContinuedUploadAreThoseOfItsContent() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 70_000))
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.informational.map(\.statusCode) == [104])
        let part = try #require(notes.sent.firstIndex { $0.total - $0.now == 70_000 })
        var end: Int64 = 70_000
        for sent in notes.sent[part...] {
            #expect(sent.total - sent.now == end && sent.expected == 200_000)
            end = sent.total
        }
        #expect(end == 200_000)
    }

    @Test func eachRequestOfAContinuedUploadIsATransaction() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 70_000))
        let notes = try await upload.run()
        let metrics = try #require(notes.metrics)
        #expect(metrics.transactionMetrics.map(\.request.httpMethod) == ["POST", "HEAD", "PATCH"])
        let statuses = metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode }
        #expect(statuses == [nil, 204, 200])
        #expect(metrics.transactionMetrics.last?.countOfRequestBodyBytesSent == 130_000)
        #expect(metrics.redirectCount == 0)
    }

    @Test func completeUploadEndsWithTheServersLastResponse() async throws {
        let upload = try await InterruptedUpload { _ in .offset(200_000, ["Upload-Complete: ?1", "X-Result: 7"]) }
        let notes = try await upload.run()
        let response = try #require(notes.response as? HTTPURLResponse)
        #expect(notes.error == nil && response.statusCode == 204)
        #expect(response.value(forHTTPHeaderField: "X-Result") == "7" && upload.parts == ["HEAD"])
    }

    @Test func conflictingOffsetIsAskedForAgain() async throws {
        let turns = Mutex(0)
        let upload = try await InterruptedUpload { request in
            let turn = turns.withLock { turns in
                turns += 1
                return turns
            }
            if request.method == "HEAD" { return .offset(turn == 1 ? 1000 : 2000) }
            return turn == 2 ? .text("{}", ["Upload-Offset: 2000", "Upload-Complete: ?0"], status: 409) : .uploaded
        }
        #expect(try await upload.run().error == nil)
        #expect(upload.parts == ["HEAD", "PATCH 1000", "HEAD", "PATCH 2000"])
    }

    @Test func partsFollowOneAnotherWithinTheServersLimit() async throws {
        let limit = ["Upload-Limit: max-append-size=80000"]
        let upload = try await InterruptedUpload(announcing: InterruptedUpload.announcement(9, more: limit)) {
            request in
            if request.method == "HEAD" { return .offset(0) }
            return request["Upload-Complete"] == "?1" ? .uploaded : .head(204, ["Upload-Complete: ?0"])
        }
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.sent.last?.total == 200_000)
        #expect(upload.parts == ["HEAD", "PATCH 0", "PATCH 80000", "PATCH 160000"])
        let bodies = upload.server.requests("/part").flatMap(\.body)
        #expect(Data(bodies) == Self.content)
    }

    @Test func uploadAboveTheServersLimitFailsAtOnce() async throws {
        let limit = ["Upload-Limit: max-size=1000"]
        let announcement = InterruptedUpload.announcement(9, more: limit)
        let upload = try await InterruptedUpload(announcing: announcement) { _ in .hang }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .dataLengthExceedsMaximum && error.uploadTaskResumeData == nil)
        // DELETE may follow.
        #expect(upload.parts.allSatisfy { $0 == "DELETE" })
    }

    @Test func temporaryErrorsAreWaitedFor() async throws {
        let turns = Mutex(0)
        let upload = try await InterruptedUpload { request in
            let turn = turns.withLock { turns in
                turns += 1
                return turns
            }
            if turn == 1 { return .head(503) }
            if request.method == "HEAD" { return .offset(5) }
            return turn == 3 ? .text("later", ["Upload-Complete: ?0"], status: 502) : .uploaded
        }
        #expect(try await upload.run().error == nil)
        #expect(upload.parts == ["HEAD", "HEAD", "PATCH 5", "HEAD", "PATCH 5"])
    }

    @Test func serverErrorWithinTheCreationIsAnInterruption() async throws {
        let (known, never) = (Gate(), Gate())
        var policies = Policies()
        policies.informational = { _ in known.open() }
        let (server, recorder) = (try await WebServer(), DataRecorder(policies))
        // The body cannot be sent to its end.
        server.onHead("/up") { _ in
            Answer([.stopReading(never)]).then(.head(104, InterruptedUpload.announcement()))
                .then(.wait(known)).then(.text("overloaded", status: 503)).closing
        }
        let content = Data(count: 24 << 20)
        server.on("/part", Answer.continuing(at: content.count - 100))
        let session = URLSession.test(recorder)
        session.uploadTask(with: .to(server.url("/up"), "PUT"), from: content).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("done".utf8))
        #expect(server.requests("/part").map(\.method) == ["HEAD", "PATCH"])
        #expect(server.requests("/part").last?.bodyCount == 100)
        session.invalidateAndCancel()
        never.open()
    }

    /// How a server ends a request that it does not answer.
    enum Interruption: CaseIterable {
        case reset
        /// FIN, or RST_STREAM of HTTP/2.
        case close
        /// Nothing more happens.
        case stall

        var step: Answer.Step {
            switch self {
            case .reset: .reset
            case .close: .close
            case .stall: .hang
            }
        }
    }

    @Test(arguments: Interruption.allCases)
    func uploadContinuesAfterAnyInterruption(_ interruption: Interruption) async throws {
        let upload = try await InterruptedUpload(
            interruptedBy: interruption.step,
            configure: { if interruption == .stall { $0.timeoutIntervalForRequest = 20 } },
            answers: Answer.continuing(at: 70_000))
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.data == Data("done".utf8), "\(notes.error as Any)")
        // On a slow machine the timeout may interrupt a further request.
        #expect(upload.parts.last == "PATCH 70000" && Set(upload.parts) == ["HEAD", "PATCH 70000"])
    }

    @Test func challengedCreationForgetsItsResource() async throws {
        let known = [Gate(), Gate()]
        let count = Mutex(0)
        var policies = Policies.credential("user", "passwd")
        policies.informational = { _ in
            let index = count.withLock { count in
                defer { count += 1 }
                return count
            }
            known[index].open()
        }
        let (server, recorder) = (try await WebServer(), DataRecorder(policies))
        server.onHead("/up") { request in
            guard request["Authorization"] != nil else {
                let challenge = Answer.text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
                return .head(104, InterruptedUpload.announcement(9, at: "/old")).then(.wait(known[0])).then(challenge)
            }
            return .head(104, InterruptedUpload.announcement()).then(.wait(known[1]), .reset)
        }
        server.on("/part", Answer.continuing(at: 9))
        let session = URLSession.test(recorder)
        session.uploadTask(with: .to(server.url("/up"), "PUT"), from: Self.content).resume()
        #expect(try await recorder.end().error == nil)
        #expect(server.requests("/old").isEmpty && server.requests("/part").count == 2)
        session.invalidateAndCancel()
    }

    @Test func challengesOfTheUploadResourceAreAnswered() async throws {
        let upload = try await InterruptedUpload(policies: .credential("user", "passwd")) { request in
            guard request["Authorization"] == "Basic dXNlcjpwYXNzd2Q=" else {
                return .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
            }
            return request.method == "HEAD" ? .offset(70_000) : .uploaded
        }
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.challenges.count == 1 && notes.sent.last?.total == 200_000)
        #expect(upload.parts == ["HEAD", "HEAD", "PATCH 70000"])
    }

    @Test func challengedPartIsSentAgain() async throws {
        let upload = try await InterruptedUpload(policies: .credential("user", "passwd")) { request in
            if request.method == "HEAD" { return .offset(70_000) }
            guard request["Authorization"] != nil else {
                return .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
            }
            return .uploaded
        }
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.sent.allSatisfy { $0.total <= 200_000 })
        #expect(upload.parts == ["HEAD", "PATCH 70000", "PATCH 70000"])
        #expect(upload.server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(70_000))
    }

    @Test func movedUploadResourceIsFollowed() async throws {
        let upload = try await InterruptedUpload { _ in .redirect(307, to: "/moved") }
        upload.server.on("/moved") { request in
            request.method == "HEAD" ? .offset(9) : .uploaded
        }
        let notes = try await upload.run()
        #expect(notes.error == nil && notes.redirects.map(\.request.httpMethod) == ["HEAD"])
        #expect(upload.server.requests("/moved").map(\.method) == ["HEAD", "PATCH"])
        #expect(notes.metrics?.redirectCount == 1)
    }

    @Test func uploadResourceThatIsNotOfHTTPIsRefused() async throws {
        let upload = try await InterruptedUpload { _ in .redirect(307, to: "myapp://moved") }
        let notes = try await upload.run()
        #expect((notes.error as? URLError)?.code == .unsupportedURL && notes.redirects.count == 1)
    }

    @Test func redirectedCreationIsAnnouncedAgain() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 9))
        upload.server.on("/away", .redirect(307, to: "/up"))
        upload.session.uploadTask(with: .to(upload.server.url("/away"), "PUT"), from: Self.content).resume()
        #expect(try await upload.recorder.end().error == nil)
        #expect(upload.parts == ["HEAD", "PATCH 9"])
        #expect(upload.server.requests("/away").first?["Upload-Complete"] == "?1")
    }

    @Test func resultOfAnUploadMayBeElsewhere() async throws {
        let upload = try await InterruptedUpload { request in
            request.method == "HEAD" ? .offset(9) : .redirect(303, to: "/result", ["Upload-Complete: ?1"])
        }
        upload.server.on("/result", .text("here"))
        #expect(try await upload.run().data == Data("here".utf8))
        #expect(upload.server.requests("/result").first?["Upload-Draft-Interop-Version"] == nil)
    }

    @Test func uploadContinuesOverTLS() async throws {
        let upload = try await InterruptedUpload(
            policies: .trusting, tls: Certificates.server(), answers: Answer.continuing(at: 70_000))
        #expect(try await upload.run().error == nil)
        #expect(upload.server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(70_000))
    }

    @Test(.onlyPlain("the second server has no TLS"))
    func encryptedUploadIsNotContinuedInTheClear() async throws {
        let other = try await WebServer()
        let location = other.url("/part").absoluteString
        let upload = try await InterruptedUpload(
            announcing: InterruptedUpload.announcement(9, at: location), policies: .trusting,
            tls: Certificates.server(), answers: Answer.continuing(at: 70_000))
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData == nil && other.requests.isEmpty)
    }

    @Test(.onlyPlain("the second server has no TLS"))
    func encryptedUploadIsNotMovedIntoTheClear() async throws {
        let other = try await WebServer()
        other.on("/part", Answer.continuing(at: 70_000))
        let location = other.url("/part").absoluteString
        let upload = try await InterruptedUpload(policies: .trusting, tls: Certificates.server()) { _ in
            .redirect(307, to: location)
        }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .networkConnectionLost && other.requests.isEmpty)
    }

    @Test func continuedUploadInvalidatesTheCachedTarget() async throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        let upload = try await InterruptedUpload(configure: { $0.urlCache = cache }, answers: Answer.continuing(at: 9))
        let request = URLRequest(url: upload.server.url("/up"))
        let response = try #require(
            HTTPURLResponse(url: upload.server.url("/up"), statusCode: 200, httpVersion: nil, headerFields: nil))
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("old".utf8)), for: request)
        #expect(cache.cachedResponse(for: request) != nil)
        #expect(try await upload.run().error == nil)
        // On the queue of the cache.
        while cache.cachedResponse(for: request) != nil { await Task.yield() }
    }

    @Test func cookiesGoToTheUploadResource() async throws {
        let upload = try await InterruptedUpload { request in
            request.method == "HEAD" ? .offset(9, ["Set-Cookie: step=2"]) : .uploaded
        }
        let cookie = try #require(
            HTTPCookie(properties: [.name: "a", .value: "b", .domain: "127.0.0.1", .path: "/part"]))
        upload.session.configuration.httpCookieStorage?.setCookie(cookie)
        #expect(try await upload.run().error == nil)
        let cookies = upload.server.requests("/part").map { $0["Cookie"] ?? "" }
        #expect(cookies.first == "a=b" && cookies.last?.contains("step=2") == true)
    }

    @Test func secretsAreNotSentToAnotherOrigin() async throws {
        let other = try await WebServer()
        other.on("/elsewhere", Answer.continuing(at: 9))
        let location = other.url("/elsewhere").absoluteString
        let announcement = InterruptedUpload.announcement(9, at: location)
        let upload = try await InterruptedUpload(announcing: announcement) { _ in .hang }
        var request = upload.request
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("\"v1\"", forHTTPHeaderField: "If-Match")
        upload.session.uploadTask(with: request, from: Self.content).resume()
        #expect(try await upload.recorder.end().error == nil)
        #expect(other.requests.map(\.method) == ["HEAD", "PATCH"])
        #expect(other.requests.allSatisfy { $0["Authorization"] == nil && $0["If-Match"] == nil && $0["X-Own"] == "1" })
    }

    @Test(.onlyWithHTTP11, .choosesItsConnections) func uploadContinuesThroughAProxy() async throws {
        let proxy = try await RelayProxy()
        let upload = try await InterruptedUpload(
            configure: {
                $0.connectionProxyDictionary = [
                    "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port,
                ]
            }, answers: Answer.continuing(at: 9))
        #expect(try await upload.run().error == nil)
        #expect(upload.parts == ["HEAD", "PATCH 9"] && proxy.tunnels >= 2)
    }

    @Test func delegateSuppliesTheRestOfAStream() async throws {
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Self.content)) }
        policies.streamRest = { InputStream(data: Self.content.dropFirst(Int($0))) }
        let upload = try await InterruptedUpload(policies: policies, answers: Answer.continuing(at: 70_000))
        upload.session.uploadTask(withStreamedRequest: upload.request).resume()
        let notes = try await upload.recorder.end()
        #expect(notes.error == nil && notes.sent.last?.total == 200_000)
        #expect(upload.recorder.log.count("needs body from 70000") == 1)
        #expect(upload.server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(70_000))
    }

    @Test func asyncDelegateSuppliesTheRestOfAStream() async throws {
        let upload = try await InterruptedUpload(answers: Answer.continuing(at: 70_000))
        let delegate = StreamSource(Self.content)
        let task = upload.session.uploadTask(withStreamedRequest: upload.request)
        task.delegate = delegate
        task.resume()
        let notes = try await upload.recorder.end()
        #expect(notes.error == nil && notes.data == Data("done".utf8))
        #expect(delegate.offsets == [0, 70_000])
        #expect(upload.server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(70_000))
    }

    @Test func streamWithoutARestFailsTheUpload() async throws {
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Self.content)) }
        let upload = try await InterruptedUpload(policies: policies, answers: Answer.continuing(at: 70_000))
        upload.session.uploadTask(withStreamedRequest: upload.request).resume()
        let error = try #require(try await upload.recorder.end().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData != nil)
        #expect(upload.parts == ["HEAD"])
    }
}

/// A task's delegate that supplies a body, and its rest.
private final class StreamSource: NSObject, URLSessionTaskDelegate, Sendable {
    private let content: Data
    private let asked = Mutex<[Int64]>([])

    init(_ content: Data) { self.content = content }

    var offsets: [Int64] { self.asked.withLock { $0 } }

    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
        await self.urlSession(session, needNewBodyStreamForTask: task, from: 0)
    }

    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream? {
        self.asked.withLock { $0.append(offset) }
        return InputStream(data: self.content.dropFirst(Int(offset)))
    }
}
