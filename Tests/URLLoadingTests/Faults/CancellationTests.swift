import Foundation
import SessionTasks
import Synchronization
import Testing
import URLLoading

@Suite("Tasks cancelled anywhere", .loading, .timeLimit(.minutes(20)))
struct CancellationTests {
    /// A server whose response has every step: a redirect, a challenge, an informational response, a body, chunks.
    private func server(_ gate: Gate) async throws -> WebServer {
        let server = try await WebServer(["/": .redirect(307, to: "/asks")])
        server.on("/asks") { request in
            guard request["Authorization"] != nil else {
                return .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
            }
            return .head(103).then(.chunked(["one", "two"], ["Cache-Control: max-age=60"]))
        }
        return server
    }

    @Test func cancelledTaskEndsOnceAnywhere() async throws {
        let server = try await self.server(Gate())
        let points = [
            "needs body", "sent", "redirect 307", "challenge HTTPBasic", "informational 103", "response 200", "data",
            "will cache", "metrics",
        ]
        for point in points {
            let current = Outcome<URLSessionTask>()
            var policies = Policies.credential("u", "p")
            policies.stream = { $0(InputStream(data: Data("body".utf8))) }
            let recorder = CancellingRecorder(policies, at: point) { current.now?.cancel() }
            let session = URLSession.test(recorder)
            let task = session.uploadTask(withStreamedRequest: .to(server.url(), "PUT"))
            current.give(task)
            task.resume()
            let notes = try await recorder.end()
            #expect(notes.completions == 1, "\(point)")
            #expect(task.state == .completed, "\(point)")
            session.finishTasksAndInvalidate()
            #expect(await recorder.log.has("invalid"), "\(point)")
            #expect(recorder.log.count("complete") == 1, "\(point)")
        }
    }

    @Test func thousandsOfTasksAreCancelledFromOtherThreads() async throws {
        let server = try await WebServer()
        server.on("/") { .chunked(["a", $0.query, "b"]) }
        server.on("/hang", .hang)
        let session = URLSession.test { $0.httpMaximumConnectionsPerHost = 32 }
        let count = 3000
        let ends = Mutex(0)
        let all = Outcome<Bool>()
        let tasks = (0..<count).map { index in
            session.dataTask(with: server.url(index % 3 == 0 ? "/hang" : "/?\(index)")) { data, _, error in
                if error == nil { #expect(data == Data("a\(index)b".utf8)) }
                let isLast = ends.withLock { ends in
                    ends += 1
                    return ends == count
                }
                if isLast { all.give(true) }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for part in 0..<8 {
                group.addTask {
                    for index in stride(from: part, to: count, by: 8) { tasks[index].resume() }
                }
                group.addTask {
                    for index in stride(from: (part + 3) % 8, to: count, by: 8) where index % 3 == 0 || index % 5 == 0 {
                        tasks[index].cancel()
                        tasks[index].suspend()
                        tasks[index].resume()
                        _ = tasks[index].state
                    }
                }
            }
        }
        #expect(try await all.value())
        #expect(ends.withLock { $0 } == count && tasks.allSatisfy { $0.state == .completed })
        #expect(try await session.liveTasks().isEmpty)
        session.invalidateAndCancel()
    }

    @Test func tasksAreCancelledWithTheirSession() async throws {
        let server = try await WebServer(["/": .chunked(["a", "b"])])
        for _ in 0..<30 {
            let recorder = DataRecorder()
            let session = URLSession.test(recorder)
            let tasks = (0..<20).map { _ in session.dataTask(with: server.url()) }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for task in tasks { task.resume() } }
                group.addTask { session.invalidateAndCancel() }
                group.addTask { for task in tasks { task.cancel() } }
            }
            #expect(await recorder.log.has("invalid"))
            #expect(recorder.log.names.last == "invalid")
            #expect(recorder.notes.completions <= tasks.count)
        }
    }

    @Test(.onlyWithHTTP11) func taskWaitingForAConnectionIsCancelled() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("first").after(gate)])
        let session = URLSession.test { $0.httpMaximumConnectionsPerHost = 1 }
        let first = Outcome<Loaded>()
        session.dataTask(with: server.url()) { first.give(Loaded(data: $0, response: $1, error: $2)) }.resume()
        await server.hasReceived(1)
        let waiting = Outcome<Loaded>()
        let task = session.dataTask(with: server.url()) { waiting.give(Loaded(data: $0, response: $1, error: $2)) }
        task.resume()
        task.cancel()
        #expect(try await waiting.value().code == .cancelled)
        gate.open()
        #expect(try await first.value().text == "first")
        #expect(server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func taskCanBeCancelledInItsHandler() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let done = Outcome<Bool>()
        let current = Outcome<URLSessionTask>()
        let task = session.dataTask(with: server.url()) { _, _, error in
            current.now?.cancel()
            session.invalidateAndCancel()
            done.give(error == nil)
        }
        current.give(task)
        task.resume()
        #expect(try await done.value() && done.count == 1)
    }

    // MARK: At the moment of success

    /// The whole response has arrived, and the delegate does not know yet.
    @Test func taskCancelledAfterItsDispositionFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let current = Outcome<URLSessionTask>()
        var policies = Policies()
        policies.response = { _, answer in
            answer(.allow)
            current.now?.cancel()
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        current.give(task)
        task.resume()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        #expect((task.error as? URLError)?.code == .cancelled && task.state == .completed)
        session.invalidateAndCancel()
    }

    @Test func taskCancelledWithItsLastDataFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        var policies = Policies()
        policies.data = { task, data in if data.count == 5 { task.cancel() } }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect((notes.error as? URLError)?.code == .cancelled && notes.error?._domain == NSURLErrorDomain)
        #expect(notes.data == Data("hello".utf8) && notes.completions == 1)
    }

    @Test func downloadCancelledWithItsLastBytesFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        var policies = Policies()
        policies.written = { task, total in if total == 5 { task.cancel() } }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.file == nil && notes.completions == 1)
        session.invalidateAndCancel()
    }

    /// It is for the program then.
    @Test func downloadCancelledWithItsFileSucceeds() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let current = Outcome<URLSessionTask>()
        var policies = Policies()
        policies.downloaded = { _ in current.now?.cancel() }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.downloadTask(with: server.url())
        current.give(task)
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.fileContent == Data("hello".utf8) && task.state == .completed)
        session.invalidateAndCancel()
    }

    /// What was downloaded is never lost: it is in the resume data, or the download has succeeded.
    @Test func downloadThatIsPausedAtItsEndKeepsItsContent() async throws {
        let server = try await WebServer(["/": .text("hello", ResumedDownloadTests.good)])
        let resumeData = Outcome<Data?>()
        var policies = Policies()
        policies.written = { task, _ in task.cancel { resumeData.give($0) } }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let notes = try await recorder.end()
        if try await resumeData.value() != nil {
            #expect((notes.error as? URLError)?.code == .cancelled)
        } else {
            #expect(notes.error == nil && notes.fileContent == Data("hello".utf8))
        }
        session.invalidateAndCancel()
    }

    /// The delegate queue is busy while the response arrives.
    @Test func taskCancelledBeforeItsHandlerIsCalledFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let configuration = URLSessionConfiguration.test
        configuration.httpMaximumConnectionsPerHost = 1
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration, delegate: nil, delegateQueue: queue)
        let outcome = Outcome<Loaded>()
        let task = session.dataTask(with: server.url()) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }
        task.resume()
        // On the same connection, after the first.
        _ = try await session.data(from: server.url())
        task.cancel()
        queue.isSuspended = false
        let loaded = try await outcome.value()
        #expect(loaded.code == .cancelled && loaded.data == nil && loaded.status == 200)
        #expect(task.state == .completed && (task.error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func streamCancelledBeforeItsEndIsReportedFails() async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.hearAll()
            task.closeWrite()
        }
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let recorder = ConnectionRecorder()
        let session = URLSession(configuration: .test, delegate: recorder, delegateQueue: queue)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        task.closeWrite()
        let (_, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 9, timeout: 0)
        task.cancel()
        queue.isSuspended = false
        let notes = try await recorder.end()
        #expect(isAtEnd && (notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.invalidateAndCancel()
    }
}
