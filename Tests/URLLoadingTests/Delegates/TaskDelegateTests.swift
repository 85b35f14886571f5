import Foundation
import Testing
import URLLoading

@Suite("Delegates of single tasks", .loading, .timeLimit(.minutes(20)))
struct TaskDelegateTests {
    /// Implements only redirects.
    final class Redirecting: NSObject, URLSessionTaskDelegate, Sendable {
        let log = EventLog()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            self.log.add("redirect")
            completionHandler(request)
        }
    }

    /// Implements no method.
    final class Silent: NSObject, URLSessionDataDelegate, Sendable {}

    /// Passes its calls on to a delegate that implements none of them.
    final class Forwarding: NSObject, URLSessionTaskDelegate, Sendable {
        let log = EventLog()
        private let inner = Silent()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            self.log.add("redirect")
            self.inner.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: completionHandler)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            if !challenge.isOfTheVariant { self.log.add("challenge") }
            return await self.inner.urlSession(session, task: task, didReceive: challenge)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            self.log.add("metrics")
            self.inner.urlSession(session, task: task, didFinishCollecting: metrics)
        }
    }

    @Test func delegateMayForwardItsCalls() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there")])
        server.on("/there", BasicAuthenticationTests.guarded())
        let forwarding = Forwarding()
        let session = URLSession.test(forwarding) { $0.urlCache = nil }
        let calls = ["redirect", "challenge", "metrics"]
        for _ in 0..<2 { #expect(try await session.load(server.url()).status == 401) }
        #expect(forwarding.log.names == calls + calls)
        session.invalidateAndCancel()
    }

    @Test func taskDelegateIsAskedBeforeTheSessions() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        let own = Redirecting()
        let task = session.dataTask(with: server.url())
        task.delegate = own
        task.resume()
        let notes = try await recorder.end()
        #expect(own.log.names == ["redirect"] && notes.redirects.isEmpty)
        // The session's delegate gets the calls that the task's delegate does not implement.
        #expect(recorder.eventsOfTheTask == ["created", "response 200", "data", "metrics", "complete"])
        #expect(task.delegate == nil)
        session.invalidateAndCancel()
    }

    @Test func taskDelegateReceivesEveryMethodItImplements() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = DataRecorder()
        let own = DataRecorder()
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        let task = session.dataTask(with: server.url())
        task.delegate = own
        task.resume()
        #expect(try await own.end().data == Data("hello".utf8))
        #expect(own.eventsOfTheTask == ["response 200", "data", "metrics", "complete"])
        #expect(recorder.eventsOfTheTask == ["created"])
        session.invalidateAndCancel()
    }

    @Test func taskDelegateIsHeldUntilTheEnd() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        weak var held: DataRecorder?
        let log: EventLog
        let task = session.dataTask(with: server.url())
        do {
            let own = DataRecorder()
            held = own
            log = own.log
            task.delegate = own
        }
        #expect(held != nil)
        task.resume()
        #expect(await log.has("complete"))
        let settled = Gate()
        session.delegateQueue.addOperation { settled.open() }
        await settled.pass()
        #expect(task.delegate == nil && held == nil)
        session.invalidateAndCancel()
    }

    @Test func taskDelegateIsNotTakenOnceTheTaskRuns() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("hello").after(gate)])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        let late = DataRecorder()
        let task = session.dataTask(with: server.url())
        task.resume()
        await server.hasReceived(1)
        task.delegate = late
        gate.open()
        #expect(try await recorder.end().completions == 1)
        #expect(late.events.isEmpty && task.delegate == nil)
        session.invalidateAndCancel()
    }

    @Test func taskDelegateMayImplementNoMethod() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == nil
                ? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401) : .text("yes")
        }
        server.on("/moved", .redirect(to: "/"))
        let session = URLSession.test(Silent())
        #expect(try await session.load(server.url("/moved")).status == 401)
        session.invalidateAndCancel()
    }

    @Test func taskDelegateOfAnAsyncFunctionIsCalledInAdditionToTheSessions() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let own = Redirecting()
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        let (data, _) = try await session.data(from: server.url(), delegate: own)
        #expect(data == Data("hello".utf8) && own.log.names == ["redirect"] && recorder.notes.redirects.isEmpty)
        session.invalidateAndCancel()
    }
}
