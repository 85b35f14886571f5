import Foundation
import SessionTasks
import Synchronization
import Testing
import URLLoading

@Suite("Order of a task's messages", .loading, .timeLimit(.minutes(20)))
struct MessageOrderTests {
    static let methods = ["HEAD", "GET", "PUT", "POST", "DELETE"]

    private static let location: Answer = .text("there")

    private func events(_ request: URLRequest, _ recorder: DataRecorder = DataRecorder()) async throws -> [String] {
        let notes = try await recorder.run(request) { $0.urlCache = nil }
        #expect(notes.completions == 1)
        return recorder.eventsOfTheTask
    }

    private static func content(_ method: String) -> [String] { method == "HEAD" ? [] : ["data"] }

    @Test(arguments: methods)
    func plainLoadHasItsOrder(_ method: String) async throws {
        // Careless servers send a body even after HEAD.
        let server = try await WebServer(["/": .text("hello")])
        let expected = ["created", "response 200"] + Self.content(method) + ["metrics", "complete"]
        #expect(try await self.events(.to(server.url(), method)) == expected)
    }

    @Test(arguments: ["PUT", "POST", "DELETE", "HEAD"])
    func bodyIsSentBeforeTheResponse(_ method: String) async throws {
        let server = try await WebServer(["/": .text("hello")])
        let expected = ["created", "sent", "response 200"] + Self.content(method) + ["metrics", "complete"]
        #expect(try await self.events(.to(server.url(), method, body: "a body")) == expected)
    }

    @Test(arguments: methods)
    func status300IsNotFollowed(_ method: String) async throws {
        let server = try await WebServer(["/": .redirect(300, to: "/there"), "/there": Self.location])
        let expected = ["created", "response 300"] + Self.content(method) + ["metrics", "complete"]
        #expect(try await self.events(.to(server.url(), method)) == expected)
    }

    @Test(arguments: methods, [301, 302, 303, 305, 306, 307, 308])
    func redirectComesFirst(_ method: String, _ status: Int) async throws {
        let server = try await WebServer(["/": .redirect(status, to: "/there"), "/there": Self.location])
        // A 303 is followed by GET, whose response has content.
        let final = status == 303 || method == "POST" && status < 303 ? "GET" : method
        let expected =
            ["created", "redirect \(status)", "response 200"] + Self.content(final) + ["metrics", "complete"]
        #expect(try await self.events(.to(server.url(), method)) == expected)
        #expect(server.requests.last?.method == final && server.requests.last?.path == "/there")
    }

    @Test(arguments: methods)
    func status304HasNoContent(_ method: String) async throws {
        // The head is followed by content, which must be ignored.
        let server = try await WebServer(["/": .text("not for you", status: 304).closing])
        #expect(
            try await self.events(.to(server.url(), method)) == ["created", "response 304", "metrics", "complete"])
    }

    @Test(arguments: methods)
    func unwantedRedirectIsTheResponse(_ method: String) async throws {
        let server = try await WebServer(["/": .redirect(to: "/there")])
        var policies = Policies()
        policies.redirect = { _, _, answer in answer(nil) }
        let recorder = DataRecorder(policies)
        let expected = ["created", "redirect 302", "response 302"] + Self.content(method) + ["metrics", "complete"]
        #expect(try await self.events(.to(server.url(), method), recorder) == expected)
        #expect(recorder.notes.data == Data(method == "HEAD" ? "".utf8 : "moved".utf8))
    }

    @Test func informationalResponseComesBeforeTheFinalOne() async throws {
        let server = try await WebServer([
            "/": .head(100).then(.head(103, ["Link: </a.css>; rel=preload"])).then(.head(102)).then(.text("hello"))
        ])
        let recorder = DataRecorder()
        let expected = [
            "created", "informational 100", "informational 103", "informational 102", "response 200", "data", "metrics",
            "complete",
        ]
        #expect(try await self.events(.to(server.url()), recorder) == expected)
        #expect(recorder.notes.informational[1].value(forHTTPHeaderField: "Link") == "</a.css>; rel=preload")
    }

    @Test func challengeComesBeforeTheResponse() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .text("yes")
        }
        let recorder = DataRecorder(.credential("u", "p"))
        let expected = ["created", "challenge HTTPBasic", "response 200", "data", "metrics", "complete"]
        #expect(try await self.events(.to(server.url()), recorder) == expected)
    }

    @Test func bodyIsAskedForAgainAfterAChallenge() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .text("yes")
        }
        var policies = Policies.credential("u", "p")
        policies.stream = { $0(InputStream(data: Data("body".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url(), "PUT")).resume()
        _ = try await recorder.end()
        let expected = [
            "created", "needs body", "sent", "challenge HTTPBasic", "needs body", "sent", "response 200", "data",
            "metrics", "complete",
        ]
        #expect(recorder.eventsOfTheTask == expected && server.requests.map(\.text) == ["body", "body"])
        session.invalidateAndCancel()
    }

    @Test func cachingIsAskedAboutAfterTheContent() async throws {
        let server = try await WebServer(["/": .text("hello", ["Cache-Control: max-age=60"])])
        let recorder = DataRecorder()
        try await recorder.run(server.url())
        #expect(
            recorder.eventsOfTheTask == [
                "created", "response 200", "data", "will cache", "metrics", "complete",
            ])
    }

    @Test func serversTrustIsAskedAboutFirst() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let recorder = DataRecorder(.trusting)
        let expected = ["created", "session challenge ServerTrust", "response 200", "data", "metrics", "complete"]
        #expect(try await self.events(.to(server.url()), recorder) == expected)
    }

    @Test func downloadHasItsOrder() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        _ = try await recorder.end()
        #expect(
            recorder.eventsOfTheTask == ["created", "redirect 302", "written", "downloaded", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    @Test func failureHasItsOrder() async throws {
        let server = try await WebServer(["/": .close])
        let recorder = DataRecorder()
        #expect(try await self.events(.to(server.url(), "POST"), recorder) == ["created", "metrics", "complete"])
        #expect(recorder.notes.error is URLError && recorder.notes.metrics?.transactionMetrics.count == 1)
    }

    @Test func didCreateTaskIsCalledFirst() {
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: URL(filePath: "/"))
        #expect(recorder.notes.created == [task] && recorder.notes.queues.isEmpty)
        session.invalidateAndCancel()
    }

    /// While it handles the data, it runs other tasks of the session to their ends.
    private final class BusyDelegate: NSObject, URLSessionDataDelegate, Sendable {
        let log = EventLog()

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            guard let url = dataTask.originalRequest?.url else { return }
            self.log.add("data begins")
            for _ in 0..<5 {
                let isLoaded = DispatchSemaphore(value: 0)
                session.dataTask(with: url) { _, _, _ in isLoaded.signal() }.resume()
                if isLoaded.wait(timeout: .now() + 120) == .timedOut { self.log.add("stuck") }
            }
            self.log.add("data ends")
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            self.log.add("complete")
        }
    }

    @Test func messagesOfATaskAreInOrderOnAConcurrentQueue() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let delegate = BusyDelegate()
        let session = URLSession.test(delegate)
        session.delegateQueue.maxConcurrentOperationCount = 4
        session.dataTask(with: server.url()).resume()
        #expect(await delegate.log.has("complete"))
        #expect(delegate.log.names == ["data begins", "data ends", "complete"])
        session.invalidateAndCancel()
    }

    /// Runs other messages of the session's delegate queue, if it is concurrent.
    private static func runOtherMessages(of session: URLSession, _ log: EventLog) {
        for _ in 0..<5 {
            let hasRun = DispatchSemaphore(value: 0)
            session.getAllTasks { _ in hasRun.signal() }
            if hasRun.wait(timeout: .now() + 120) == .timedOut { log.add("stuck") }
        }
    }

    @Test func messagesOfAWebSocketAreInOrderOnAConcurrentQueue() async throws {
        let server = try await ConnectionServer { stream in
            let socket = try await stream.accept()
            for text in ["a", "b", "c"] { try await socket.send(.string(text)) }
            _ = await socket.end()
        }
        let session = URLSession.test()
        session.delegateQueue.maxConcurrentOperationCount = 4
        let task = session.webSocketTask(with: server.url())
        let log = EventLog()
        for _ in 0..<3 {
            task.receive { result in
                let text = WebSocketTaskTests.text(result)
                log.add("\(text) begins")
                Self.runOtherMessages(of: session, log)
                log.add("\(text) ends")
            }
        }
        task.resume()
        #expect(await log.has("c ends"))
        #expect(log.names == ["a", "b", "c"].flatMap { ["\($0) begins", "\($0) ends"] })
        session.invalidateAndCancel()
    }

    @Test func messagesOfAStreamAreInOrderOnAConcurrentQueue() async throws {
        let server = try await ConnectionServer { stream in
            try await stream.write(Array("abc".utf8))
            stream.closeWrite()
        }
        let session = URLSession.test()
        session.delegateQueue.maxConcurrentOperationCount = 4
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let log = EventLog()
        for _ in 0..<3 {
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { data, _, _ in
                let text = String(decoding: data ?? Data(), as: UTF8.self)
                log.add("\(text) begins")
                Self.runOtherMessages(of: session, log)
                log.add("\(text) ends")
            }
        }
        task.resume()
        #expect(await log.has("c ends"))
        #expect(log.names == ["a", "b", "c"].flatMap { ["\($0) begins", "\($0) ends"] })
        session.invalidateAndCancel()
    }

    /// Notes each operation that is added.
    private final class NotedQueue: OperationQueue, @unchecked Sendable {
        let log = EventLog()
        private let count = Mutex(0)

        override func addOperation(_ operation: Operation) {
            super.addOperation(operation)
            let count = self.count.withLock { count in
                count += 1
                return count
            }
            self.log.add("added \(count)")
        }
    }

    @Test func messagesAndTheProgramsOperationsRunAsTheyWereAdded() async throws {
        let (queue, log) = (NotedQueue(), EventLog())
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let session = URLSession(configuration: .test, delegate: nil, delegateQueue: queue)
        session.getAllTasks { _ in log.add("first") }
        #expect(await queue.log.has("added 1"))
        queue.addOperation(BlockOperation { log.add("own") })
        session.getAllTasks { _ in log.add("second") }
        #expect(await queue.log.has("added 3"))
        queue.isSuspended = false
        #expect(await log.has("second"))
        #expect(log.names == ["first", "own", "second"])
        session.invalidateAndCancel()
    }

    @Test func messagesOfAllTasksComeOneAtATime() async throws {
        let server = try await WebServer()
        server.on("/") { .chunked(["a", "b", $0.query]) }
        let probe = OverlapProbe()
        let session = URLSession.test(probe)
        for index in 0..<60 { session.dataTask(with: server.url("/?\(index)")).resume() }
        #expect(try await probe.finished(60))
        #expect(probe.overlaps == 0)
        session.invalidateAndCancel()
    }
}
