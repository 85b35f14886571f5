import Foundation
import Testing
import URLLoading

@Suite("Sessions", .loading, .timeLimit(.minutes(20)))
struct SessionTests {
    @Test(.onlyPlain("the shared session trusts the system's roots alone"))
    func sharedSessionIsOneObject() async throws {
        let server = try await WebServer(["/": .text("still here")])
        #expect(URLSession.shared === URLSession.shared && URLSession.shared.delegate == nil)
        #expect(URLSession.shared.configuration.httpCookieStorage === HTTPCookieStorage.shared)
        URLSession.shared.finishTasksAndInvalidate()
        URLSession.shared.invalidateAndCancel()
        #expect(try await URLSession.shared.load(server.url()).text == "still here")
    }

    @Test func sessionIsItsOwnCopy() {
        let session = URLSession.test()
        #expect(session.copy() as AnyObject === session)
        session.invalidateAndCancel()
    }

    @Test func sessionKeepsItsConfiguration() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let configuration = URLSessionConfiguration.test
        configuration.httpAdditionalHeaders = ["X-When": "before"]
        let session = URLSession(configuration: configuration)
        configuration.httpAdditionalHeaders = ["X-When": "behind its back"]
        session.configuration.httpAdditionalHeaders = ["X-When": "in a copy"]
        #expect(session.configuration !== session.configuration)
        #expect(session.configuration.httpAdditionalHeaders?["X-When"] as? String == "before")
        _ = try await session.load(server.url())
        #expect(server.requests.first?["X-When"] == "before")
        session.invalidateAndCancel()
    }

    @Test func sessionMakesASerialDelegateQueue() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
        session.dataTask(with: server.url()).resume()
        // Calls during the creation of a task are made on the creating thread.
        let queues = try await recorder.end().queues.subtracting([ObjectIdentifier(OperationQueue.main)])
        #expect(queues == [ObjectIdentifier(session.delegateQueue)])
        session.invalidateAndCancel()
    }

    @Test func delegateIsCalledOnTheGivenQueue() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .test, delegate: nil, delegateQueue: queue)
        #expect(session.delegateQueue === queue)
        let seen = Outcome<Bool>()
        session.dataTask(with: server.url()) { _, _, _ in seen.give(OperationQueue.current === queue) }.resume()
        #expect(try await seen.value())
        let listed = Outcome<Bool>()
        session.getAllTasks { _ in listed.give(OperationQueue.current === queue) }
        #expect(try await listed.value())
        session.invalidateAndCancel()
    }

    @Test(arguments: [1, 4])
    func cancelledOperationsOfTheDelegateQueueLoseNoCalls(_ width: Int) async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let queue = session.delegateQueue
        queue.maxConcurrentOperationCount = width
        queue.isSuspended = true
        let listed = Outcome<Int>()
        session.getAllTasks { listed.give($0.count) }
        queue.cancelAllOperations()
        queue.isSuspended = false
        #expect(try await listed.value() == 0)
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
    }

    @Test func sessionDescriptionIsKept() {
        let session = URLSession.test()
        #expect(session.sessionDescription == nil)
        session.sessionDescription = "mine"
        #expect(session.sessionDescription == "mine")
        session.invalidateAndCancel()
    }

    @Test func sessionRetainsItsDelegateUntilItIsInvalid() async throws {
        weak var held: Recorder?
        let log: EventLog
        let session: URLSession
        do {
            let recorder = Recorder()
            held = recorder
            log = recorder.log
            session = URLSession.test(recorder)
        }
        #expect(held != nil && session.delegate != nil)
        session.invalidateAndCancel()
        #expect(await log.has("invalid"))
        // The queue releases the delegate after its last operation.
        let gone = Gate()
        session.delegateQueue.addOperation { gone.open() }
        #expect(await gone.pass())
        #expect(session.delegate == nil && held == nil)
        #expect(log.names == ["invalid"])
    }

    @Test func finishTasksAndInvalidateWaitsForRunningTasks() async throws {
        let gate = Gate()
        let server = try await WebServer(["/slow": .text("done").after(gate)])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url("/slow")).resume()
        await server.hasReceived(1)
        session.finishTasksAndInvalidate()
        #expect(recorder.log.count("invalid") == 0)
        let late = try await session.load(server.url("/slow"))
        #expect(late.code == .cancelled)
        gate.open()
        #expect(await recorder.log.has("invalid"))
        #expect(recorder.events.suffix(2) == ["complete", "invalid"] && recorder.error == nil)
        #expect(recorder.notes.data == Data("done".utf8) && recorder.notes.invalidity == nil)
        #expect(server.requests.count == 1)
    }

    @Test func invalidateAndCancelCancelsEveryTask() async throws {
        let server = try await WebServer(["/": .hang])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let outcomes = (0..<5).map { _ in Outcome<Loaded>() }
        for (index, outcome) in outcomes.enumerated() {
            let task = session.dataTask(with: server.url()) {
                outcome.give(Loaded(data: $0, response: $1, error: $2))
            }
            // The last task was never resumed, but ends too.
            if index < 4 { task.resume() }
        }
        await server.hasReceived(4)
        session.invalidateAndCancel()
        for outcome in outcomes {
            let loaded = try await outcome.value()
            let error = try #require(loaded.error as? URLError)
            #expect(error.code == .cancelled && error.localizedDescription == "cancelled" && loaded.data == nil)
            #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == server.url())
            #expect(error.userInfo["NSErrorFailingURLStringKey"] as? String == server.url().absoluteString)
        }
        #expect(await recorder.log.has("invalid"))
        #expect(recorder.log.count("invalid") == 1 && outcomes.allSatisfy { $0.count == 1 })
        #expect(try await session.liveTasks().isEmpty)
    }

    @Test func taskOfAnInvalidSessionFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        session.invalidateAndCancel()
        #expect(try await session.load(server.url()).code == .cancelled)
        let upload = Outcome<URLError.Code?>()
        session.uploadTask(with: .to(server.url(), "PUT"), from: Data()) { upload.give(($2 as? URLError)?.code) }
            .resume()
        #expect(try await upload.value() == .cancelled)
        let download = Outcome<URLError.Code?>()
        session.downloadTask(with: server.url()) { download.give(($2 as? URLError)?.code) }.resume()
        #expect(try await download.value() == .cancelled)
        await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        // A task without a handler ends without a call.
        let task = session.dataTask(with: server.url())
        task.resume()
        #expect(try await session.liveTasks().isEmpty && server.requests.isEmpty)
    }

    @Test func invalidSessionReleasesItsTasks() async throws {
        let server = try await WebServer(["/": .text("hello"), "/hang": .hang])
        weak var held: URLSession?
        weak var task: URLSessionTask?
        let log: EventLog
        do {
            let recorder = DataRecorder()
            log = recorder.log
            let session = URLSession.test(recorder)
            held = session
            #expect(try await session.load(server.url()).text == "hello")
            let hanging = session.dataTask(with: server.url("/hang"))
            hanging.resume()
            task = hanging
            session.invalidateAndCancel()
        }
        #expect(await log.has("invalid"))
        // Running work is released when it ends, on other threads.
        for _ in 0..<24_000 where held != nil || task != nil { await Gate().pass(within: .milliseconds(10)) }
        #expect(held == nil && task == nil)
    }

    @Test func sessionLivesWhileItsTasksRun() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("done").after(gate)])
        let outcome = Outcome<Loaded>()
        do {
            let session = URLSession.test()
            session.dataTask(with: server.url()) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }.resume()
        }
        await server.hasReceived(1)
        gate.open()
        #expect(try await outcome.value().text == "done")
    }
}
