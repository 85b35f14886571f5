import Foundation
import SessionTasks
import Testing
import URLLoading
import WebSocketProtocol

@Suite("WebSocket tasks", .loading, .timeLimit(.minutes(20)))
struct WebSocketTaskTests {
    typealias Message = URLSessionWebSocketTask.Message

    /// Accepts, and sends every message back.
    static let echo: ConnectionServer.Script = { stream in
        _ = try await stream.accept(subprotocols: ["chat"]).echo()
    }

    static func text(_ message: Message) -> String {
        switch message {
        case .data(let data): "\(data.count) bytes"
        case .string(let text): text
        }
    }

    static func text(_ result: Result<Message, any Error>) -> String {
        switch result {
        case .success(let message): self.text(message)
        case .failure(let error): "\((error as? URLError)?.code.rawValue ?? 0)"
        }
    }

    private func receive(_ task: URLSessionWebSocketTask) -> Outcome<String> {
        let outcome = Outcome<String>()
        task.receive { outcome.give(Self.text($0)) }
        return outcome
    }

    private func send(_ task: URLSessionWebSocketTask, _ message: Message) -> Outcome<URLError?> {
        let outcome = Outcome<URLError?>()
        task.send(message) { outcome.give($0 as? URLError) }
        return outcome
    }

    // MARK: Messages

    @Test func messagesAreSentAndReceivedInOrder() async throws {
        let server = try await ConnectionServer.webSockets(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        // Asked for before it is open, and more than is sent yet.
        let received = (0..<3).map { _ in self.receive(task) }
        let sent = [
            self.send(task, .string("one")), self.send(task, .data(Data(count: 70_000))),
            self.send(task, .string("zwölf")),
        ]
        #expect(task.state == .suspended && task.closeCode == .invalid && task.closeReason == nil)
        task.resume()
        for outcome in sent { #expect(try await outcome.value() == nil) }
        var texts: [String] = []
        for outcome in received { texts.append(try await outcome.value()) }
        #expect(texts == ["one", "70000 bytes", "zwölf"])
        try await task.send(.string(""))
        #expect(Self.text(try await task.receive()) == "")
        #expect(task.countOfBytesSent == 70_009 && task.countOfBytesReceived == 70_009)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 101 && task.state == .running)
    }

    @Test func messagesAreQueuedUntilReceived() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            for number in 0..<200 { try await socket.send(.string("\(number)")) }
            gate.open()
            _ = await socket.end()
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        await gate.pass()
        for number in 0..<200 { #expect(Self.text(try await task.receive()) == "\(number)") }
    }

    @Test func fragmentsAreJoinedHoweverTheyArrive() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            let pieces = ["ab", "cdé", "f"]
            for (index, piece) in pieces.enumerated() {
                let first = (index == 0 ? 1 : 0) | (index == pieces.count - 1 ? 0x80 : 0)
                let frame = [UInt8(first), UInt8(piece.utf8.count)] + Array(piece.utf8) + [0x89, 1, 0x2E]
                // The Ping after the last fragment has no effect on the message.
                for byte in frame { try await stream.write([byte]) }
            }
            let large = [UInt8](repeating: 7, count: 20_000)
            try await stream.write([0x82, 126, 0x4E, 0x20] + large)
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        #expect(Self.text(try await task.receive()) == "abcdéf")
        #expect(Self.text(try await task.receive()) == "20000 bytes")
    }

    @Test func handlersRunOnTheDelegateQueue() async throws {
        let server = try await ConnectionServer.webSockets(Self.echo)
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .test, delegate: nil, delegateQueue: queue)
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        let outcome = Outcome<[Bool]>()
        task.send(.string("x")) { _ in
            let sent = OperationQueue.current === queue
            task.receive { _ in
                let received = OperationQueue.current === queue
                task.sendPing { _ in outcome.give([sent, received, OperationQueue.current === queue]) }
            }
        }
        #expect(try await outcome.value() == [true, true, true])
    }

    @Test func pingsAreAnsweredInOrderOnceEach() async throws {
        let server = try await ConnectionServer.webSockets(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        let log = EventLog()
        for number in 0..<5 { task.sendPing { log.add("pong \(number) \($0 == nil)") } }
        task.resume()
        #expect(await log.has("pong 4 true"))
        #expect(log.names == (0..<5).map { "pong \($0) true" })
        try await task.sendPing()
    }

    @Test func unsolicitedPongsAreIgnored() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            try await stream.write([0x8A, 0, 0x8A, 2, 0x61, 0x62, 0x81, 1, 0x61])
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        #expect(Self.text(try await task.receive()) == "a")
    }

    // MARK: Swift tasks

    @Test func cancelledReceiveLosesNoMessage() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            await gate.pass()
            try await socket.send(.string("kept"))
            _ = await socket.end()
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        // Before it is resumed, and after.
        for _ in 0..<2 {
            let waiting = Task { try await task.receive() }
            waiting.cancel()
            let error = await #expect(throws: URLError.self) { try await waiting.value }
            #expect(error?.code == .cancelled)
            task.resume()
        }
        gate.open()
        #expect(Self.text(try await task.receive()) == "kept")
        #expect(task.state == .running)
    }

    @Test func messagesComeAsASequence() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            for text in ["a", "b", "c"] { try await socket.send(.string(text)) }
            socket.cancel(with: .normalClosure)
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        var texts: [String] = []
        for try await message in task.messages { texts.append(Self.text(message)) }
        #expect(texts == ["a", "b", "c"])
        #expect(task.closeCode == .normalClosure)
    }

    @Test func unexpectedEndIsThrownByTheSequence() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            try await stream.write([0x81, 1, 0x61])
            stream.closeWrite()
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        var texts: [String] = []
        let error = await #expect(throws: URLError.self) {
            for try await message in task.messages { texts.append(Self.text(message)) }
        }
        #expect(texts == ["a"] && error?.code == .networkConnectionLost)
    }

    // MARK: Resting

    @Test func suspendedTaskNeitherReadsNorSends() async throws {
        let server = try await ConnectionServer.webSockets(Self.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await task.send(.string("a"))
        #expect(Self.text(try await task.receive()) == "a")
        task.suspend()
        task.suspend()
        let sent = self.send(task, .string("b"))
        let received = self.receive(task)
        let other = session.webSocketTask(with: server.url())
        other.resume()
        try await other.send(.string("c"))
        _ = try await other.receive()
        task.resume()
        #expect(sent.now == nil && received.now == nil && task.state == .suspended)
        task.resume()
        #expect(try await sent.value() == nil)
        #expect(try await received.value() == "b")
    }

    @Test func closedTaskLeavesNothingBehind() async throws {
        let server = try await ConnectionServer.webSockets(Self.echo)
        weak var released: URLSessionWebSocketTask?
        let session = URLSession.test()
        do {
            let task = session.webSocketTask(with: server.url())
            released = task
            task.resume()
            try await task.send(.string("x"))
            task.cancel(with: .goingAway, reason: nil)
        }
        session.finishTasksAndInvalidate()
        while released != nil { await Task.yield() }
    }
}
