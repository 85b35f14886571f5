import Foundation
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
        #expect(try await all.value(within: .seconds(60)))
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
}
