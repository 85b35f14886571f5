import Foundation
import SessionTasks
import Synchronization
import Testing
import URLLoading

@Suite("Stream tasks", .loading, .timeLimit(.minutes(20)))
struct StreamTaskTests {
    /// Echoes all bytes until the end, then ends.
    static let echo: ConnectionServer.Script = { task in
        while true {
            let chunk = try await task.read(maximum: 65_536)
            try await task.write(chunk.bytes)
            if chunk.isAtEnd { return task.closeWrite() }
        }
    }

    struct Read: Sendable {
        let data: Data?
        let isAtEnd: Bool
        let error: URLError?

        var text: String? { self.data.map { String(decoding: $0, as: UTF8.self) } }
    }

    private func read(
        _ task: URLSessionStreamTask, _ minimum: Int, _ maximum: Int, timeout: TimeInterval = 0
    ) -> Outcome<Read> {
        let outcome = Outcome<Read>()
        task.readData(ofMinLength: minimum, maxLength: maximum, timeout: timeout) { data, isAtEnd, error in
            outcome.give(Read(data: data, isAtEnd: isAtEnd, error: error as? URLError))
        }
        return outcome
    }

    private func write(_ task: URLSessionStreamTask, _ text: String, timeout: TimeInterval = 0) -> Outcome<URLError?> {
        let outcome = Outcome<URLError?>()
        task.write(Data(text.utf8), timeout: timeout) { outcome.give($0 as? URLError) }
        return outcome
    }

    // MARK: Reading and writing

    @Test func streamTaskReadsBytesOfItsPeer() async throws {
        let server = try await ConnectionServer(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        #expect(task.originalRequest == nil && task.currentRequest == nil && task.state == .suspended)
        task.resume()
        #expect(try await self.write(task, "hello").value() == nil)
        let read = try await self.read(task, 5, 100).value()
        #expect(read.text == "hello" && !read.isAtEnd && read.error == nil)
        try await task.write(Data("again".utf8), timeout: 60)
        let (data, isAtEnd) = try await task.readData(ofMinLength: 5, maxLength: 5, timeout: 60)
        #expect(data == Data("again".utf8) && !isAtEnd)
        #expect(task.countOfBytesSent == 10 && task.countOfBytesReceived == 10 && task.state == .running)
    }

    @Test func operationsBeforeTheConnectionRunInOrder() async throws {
        let server = try await ConnectionServer(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let reads = [self.read(task, 2, 2), self.read(task, 1, 1), self.read(task, 3, 9)]
        for text in ["ab", "cd", "ef"] { _ = self.write(task, text) }
        task.resume()
        var texts: [String?] = []
        for read in reads { texts.append(try await read.value().text) }
        #expect(texts == ["ab", "c", "def"])
    }

    @Test func readWaitsForItsMinimum() async throws {
        let gate = Gate()
        let server = try await ConnectionServer { task in
            try await task.say("ab")
            await gate.pass()
            try await task.say("cdefgh")
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let first = self.read(task, 0, 10)
        #expect(try await first.value().text == "ab")
        let second = self.read(task, 4, 5)
        gate.open()
        #expect(try await second.value().text == "cdefg")
        #expect(try await self.read(task, 1, 10).value().text == "h")
    }

    @Test func readGivesLessAtTheEnd() async throws {
        let server = try await ConnectionServer { task in
            try await task.say("rest")
            task.closeWrite()
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let read = try await self.read(task, 100, 200).value()
        #expect(read.text == "rest" && read.isAtEnd && read.error == nil)
        let again = try await self.read(task, 1, 1).value()
        #expect(again.data == Data() && again.isAtEnd)
    }

    @Test func handlersRunOnTheDelegateQueue() async throws {
        let server = try await ConnectionServer(Self.echo)
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .test, delegate: nil, delegateQueue: queue)
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let outcome = Outcome<Bool>()
        task.write(Data("x".utf8), timeout: 0) { _ in
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, _ in
                outcome.give(OperationQueue.current === queue)
            }
        }
        #expect(try await outcome.value())
    }

    @Test func invalidReadLengthsAreRefused() async throws {
        let server = try await ConnectionServer(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        for (minimum, maximum) in [(2, 1), (-1, 4), (0, 0)] {
            let read = try await self.read(task, minimum, maximum).value()
            #expect(read.error?.code == .unknown && read.data == nil)
            #expect(read.error?.userInfo[NSUnderlyingErrorKey] as? POSIXError == POSIXError(.EINVAL))
        }
        _ = self.write(task, "ok")
        #expect(try await self.read(task, 2, 2).value().text == "ok")
    }

    // MARK: Timeouts

    @Test func timedOutReadFailsTheReadsQueuedAfterIt() async throws {
        let server = try await ConnectionServer(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let late = self.read(task, 1, 1, timeout: 0.05)
        let behind = self.read(task, 1, 1)
        #expect(try await late.value().error?.code == .timedOut)
        #expect(try await behind.value().error?.code == .timedOut)
        #expect(try await self.read(task, 1, 1).value().error?.code == .timedOut)
        #expect(try await self.write(task, "still").value() == nil)
    }

    @Test func writeTimesOut() async throws {
        let gate = Gate()
        let server = try await ConnectionServer { _ in await gate.pass() }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let outcome = Outcome<URLError?>()
        task.write(Data(count: 64 << 20), timeout: 0.1) { outcome.give($0 as? URLError) }
        #expect(try await outcome.value()?.code == .timedOut)
        #expect(try await self.write(task, "more").value()?.code == .timedOut)
        gate.open()
    }

    /// The timeout of one read begins when its task is resumed; the other's ends before.
    @Test func readTimeoutBeginsWhenTheTaskIsResumed() async throws {
        let gate = Gate()
        let server = try await ConnectionServer { _ in await gate.pass() }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let read = self.read(task, 1, 1, timeout: 0.05)
        let other = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        other.resume()
        #expect(try await self.read(other, 1, 1, timeout: 0.3).value().error?.code == .timedOut)
        #expect(read.count == 0)
        task.resume()
        #expect(try await read.value().error?.code == .timedOut)
        gate.open()
    }

    // MARK: Failing

    @Test func connectionToAClosedPortFails() async throws {
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withSocketPath: "/nowhere/at/all")
        let read = self.read(task, 1, 1)
        task.resume()
        #expect(try await read.value().error?.code == .cannotConnectToHost)
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cannotConnectToHost && notes.stateAtCompletion == .completed)
        #expect((task.error as? URLError)?.code == .cannotConnectToHost)
        #expect(recorder.eventsOfTheTask == ["created", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    @Test(arguments: [("", 80), ("127.0.0.1", 0), ("127.0.0.1", -1), ("127.0.0.1", 65_536)])
    func impossibleHostOrPortIsABadURL(_ host: String, _ port: Int) async throws {
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: host, port: port)
        task.resume()
        #expect((try await recorder.end().error as? URLError)?.code == .badURL)
        #expect(try await self.read(task, 1, 1).value().error?.code == .badURL)
        await #expect(throws: URLError.self) { try await task.write(Data(), timeout: 0) }
        session.invalidateAndCancel()
    }

    @Test func invalidSessionCancelsItsStreamTask() async throws {
        let session = URLSession.test()
        session.invalidateAndCancel()
        let task = session.streamTask(withHostName: "127.0.0.1", port: 9)
        let read = self.read(task, 1, 1)
        task.resume()
        #expect(try await read.value().error?.code == .cancelled)
    }

    @Test func taskEndsWithItsConnection() async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.hear(1)
            task.cancel()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        _ = self.write(task, "x")
        // The end is detected without a read.
        #expect((try await recorder.end().error as? URLError)?.code == .networkConnectionLost)
        #expect(try await self.read(task, 1, 1).value().error?.code == .networkConnectionLost)
        session.invalidateAndCancel()
    }

    @Test func cancelFailsPendingOperations() async throws {
        let gate = Gate()
        let server = try await ConnectionServer { _ in await gate.pass() }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let reads = [self.read(task, 1, 1), self.read(task, 1, 1)]
        #expect(try await self.write(task, "x").value() == nil)
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)
        for read in reads { #expect(try await read.value().error?.code == .cancelled) }
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .cancelled && error.localizedDescription == "cancelled")
        #expect(try await self.read(task, 1, 1).value().error?.code == .cancelled)
        #expect(recorder.notes.completions == 1)
        gate.open()
        session.invalidateAndCancel()
    }

    @Test func taskCanBeCancelledBeforeItBegins() async throws {
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: 9)
        let read = self.read(task, 1, 1)
        task.cancel()
        #expect(try await read.value().error?.code == .cancelled)
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func bytesOfAWithdrawnReadGoToTheNext() async throws {
        let gate = Gate()
        let server = try await ConnectionServer { task in
            await gate.pass()
            try await task.say("message")
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        let waiting = Task { try await task.readData(ofMinLength: 1, maxLength: 100, timeout: 0) }
        waiting.cancel()
        let error = await #expect(throws: URLError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        gate.open()
        let (data, _) = try await task.readData(ofMinLength: 7, maxLength: 100, timeout: 0)
        #expect(data == Data("message".utf8))
    }
}
