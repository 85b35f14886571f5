import Foundation
import SessionTasks
import StreamTransport
import Testing
import URLLoading

@Suite("The directions of stream tasks", .loading, .timeLimit(.minutes(20)))
struct StreamDirectionTests {
    @Test func closeWriteFollowsQueuedWrites() async throws {
        let heard = Outcome<String>()
        let server = try await ConnectionServer { task in
            heard.give(try await task.hearAll())
            try await task.say("late")
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.write(Data("first".utf8), timeout: 0) { _ in }
        task.closeWrite()
        task.closeWrite()
        task.resume()
        #expect(try await heard.value() == "first")
        #expect(await recorder.log.has("write closed"))
        let error = await #expect(throws: URLError.self) { try await task.write(Data("x".utf8), timeout: 0) }
        #expect(error?.code == .networkConnectionLost)
        // Reading still works.
        let (data, _) = try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 0)
        #expect(data == Data("late".utf8) && recorder.log.count("write closed") == 1)
        session.invalidateAndCancel()
    }

    @Test func closeReadFollowsQueuedReads() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let outcome = Outcome<Data?>()
        task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { data, _, _ in outcome.give(data) }
        task.closeRead()
        task.resume()
        try await task.write(Data("ab".utf8), timeout: 0)
        #expect(try await outcome.value() == Data("ab".utf8))
        #expect(await recorder.log.has("read closed"))
        let error = await #expect(throws: URLError.self) {
            try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        }
        #expect(error?.code == .networkConnectionLost)
        // Writing still works.
        try await task.write(Data("more".utf8), timeout: 0)
        session.invalidateAndCancel()
    }

    @Test func readClosedIsReportedWithoutARead() async throws {
        let server = try await ConnectionServer { task in
            try await task.say("unread")
            task.closeWrite()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        #expect(await recorder.log.has("read closed"))
        // Earlier bytes can still be read.
        let (data, isAtEnd) = try await task.readData(ofMinLength: 100, maxLength: 100, timeout: 0)
        #expect(data == Data("unread".utf8) && isAtEnd)
        session.invalidateAndCancel()
    }

    @Test func taskCompletesWhenBothDirectionsAreClosed() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        try await task.write(Data("bye".utf8), timeout: 0)
        task.closeWrite()
        let (data, isAtEnd) = try await task.readData(ofMinLength: 100, maxLength: 100, timeout: 0)
        #expect(data == Data("bye".utf8) && isAtEnd)
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.stateAtCompletion == .completed && task.error == nil)
        #expect(recorder.eventsOfTheTask == ["created", "write closed", "read closed", "metrics", "complete"])
        #expect(notes.metrics?.transactionMetrics.isEmpty == true)
        #expect(try await session.liveTasks().isEmpty)
        session.invalidateAndCancel()
    }

    @Test func streamTaskWorksOverAUnixSocket() async throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appending(path: "socket").path(percentEncoded: false)
        let server = try await ConnectionServer(at: .unix(path: path), StreamTaskTests.echo)
        let session = URLSession.test()
        let task = session.streamTask(withSocketPath: path)
        task.resume()
        try await task.write(Data("local".utf8), timeout: 0)
        let (data, _) = try await task.readData(ofMinLength: 5, maxLength: 5, timeout: 0)
        #expect(data == Data("local".utf8))
        session.invalidateAndCancel()
        withExtendedLifetime(server) {}
    }

    @Test func suspendedStreamNeitherReadsNorWrites() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        try await task.write(Data("a".utf8), timeout: 0)
        _ = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        task.suspend()
        #expect(task.state == .suspended)
        let outcome = Outcome<Bool>()
        task.write(Data("b".utf8), timeout: 0) { outcome.give($0 == nil) }
        // Meanwhile another task completes an exchange.
        let other = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        other.resume()
        try await other.write(Data("c".utf8), timeout: 0)
        _ = try await other.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        #expect(outcome.now == nil)
        task.resume()
        #expect(try await outcome.value())
    }

    @Test func closedStreamLeavesNothingBehind() async throws {
        let server = try await ConnectionServer(StreamTaskTests.echo)
        weak var released: URLSessionStreamTask?
        let session = URLSession.test()
        do {
            let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
            released = task
            task.resume()
            try await task.write(Data("x".utf8), timeout: 0)
            task.cancel()
        }
        let gone = Outcome<Bool>()
        session.finishTasksAndInvalidate()
        session.delegateQueue.addOperation { session.delegateQueue.addOperation { gone.give(true) } }
        _ = try await gone.value()
        while released != nil { await Task.yield() }
    }
}
