import Foundation
import SessionTasks
import Testing
import URLLoading
import WebSocketProtocol

@Suite("The ends of WebSocket tasks", .loading, .timeLimit(.minutes(20)))
struct WebSocketClosingTests {
    private typealias Code = URLSessionWebSocketTask.CloseCode

    @Test func closeCodeAndReasonOfTheServerAreReported() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            try await socket.send(.string("last"))
            socket.cancel(with: WebSocketProtocol.CloseCode(rawValue: 4001), reason: Array("enough".utf8))
            _ = await socket.end()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        #expect(WebSocketTaskTests.text(try await task.receive()) == "last")
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.code == .networkConnectionLost)
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.stateAtCompletion == .completed)
        #expect(recorder.eventsOfTheTask == ["created", "open -", "close 4001 enough", "metrics", "complete"])
        #expect(task.closeCode == Code(rawValue: 4001) && task.closeReason == Data("enough".utf8))
        await #expect(throws: URLError.self) { try await task.send(.string("x")) }
        await #expect(throws: URLError.self) { try await task.sendPing() }
        session.invalidateAndCancel()
    }

    /// While it handles the close code, it exchanges Pings on another WebSocket.
    private final class BusyDelegate: NSObject, URLSessionWebSocketDelegate, Sendable {
        let log = EventLog()
        let other = Outcome<URLSessionWebSocketTask>()

        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: Code, reason: Data?
        ) {
            self.log.add("close begins")
            let isDone = DispatchSemaphore(value: 0)
            Task {
                for _ in 0..<5 { try await self.other.value().sendPing() }
                isDone.signal()
            }
            if isDone.wait(timeout: .now() + 120) == .timedOut { self.log.add("stuck") }
            self.log.add("close ends")
        }
    }

    @Test(arguments: [false, true])
    func delegateGetsTheCloseCodeBeforeAReceiveEnds(_ isSequence: Bool) async throws {
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            try await socket.send(.string("last"))
            socket.cancel(with: .goingAway)
        }
        let peer = try await ConnectionServer.webSockets(WebSocketTaskTests.echo)
        let delegate = BusyDelegate()
        let (session, others) = (URLSession.test(delegate), URLSession.test())
        let other = others.webSocketTask(with: peer.url())
        other.resume()
        try await other.sendPing()
        delegate.other.give(other)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        if isSequence {
            for try await message in task.messages { #expect(WebSocketTaskTests.text(message) == "last") }
        } else {
            #expect(WebSocketTaskTests.text(try await task.receive()) == "last")
            await #expect(throws: URLError.self) { try await task.receive() }
        }
        delegate.log.add("ended")
        #expect(delegate.log.names == ["close begins", "close ends", "ended"])
        for session in [session, others] { session.invalidateAndCancel() }
    }

    @Test func messagesBeforeTheEndAreDelivered() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            for text in ["a", "b"] { try await socket.send(.string(text)) }
            socket.cancel(with: .goingAway)
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await recorder.end()
        var texts: [String] = []
        for _ in 0..<2 { texts.append(WebSocketTaskTests.text(try await task.receive())) }
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(texts == ["a", "b"] && error?.code == .networkConnectionLost)
        session.invalidateAndCancel()
    }

    @Test func closeFrameWithoutACodeIsReported() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            try await stream.write([0x88, 0])
            stream.closeWrite()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await recorder.end()
        #expect(recorder.eventsOfTheTask.contains("close 1005 -"))
        #expect(task.closeCode == .noStatusReceived && task.closeReason == nil)
        session.invalidateAndCancel()
    }

    @Test func codeAndReasonAreSent() async throws {
        let ended = Outcome<WebSocketEnd>()
        let server = try await ConnectionServer.webSockets { stream in ended.give(try await stream.accept().echo()) }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await task.send(.string("x"))
        _ = try await task.receive()
        let waiting = Outcome<String>()
        task.receive { waiting.give(WebSocketTaskTests.text($0)) }
        task.cancel(with: .normalClosure, reason: Data("BuhBye".utf8))
        #expect(task.state == .canceling || task.state == .completed)
        let end = try await ended.value()
        #expect(end.isClean && end.code == .normalClosure && end.reason == Array("BuhBye".utf8))
        #expect(try await waiting.value() == "-1005")
        let notes = try await recorder.end()
        #expect(notes.error == nil)
        #expect(recorder.eventsOfTheTask == ["created", "open -", "close 1000 -", "metrics", "complete"])
        #expect(task.closeCode == .normalClosure && task.closeReason == Data("BuhBye".utf8))
        session.invalidateAndCancel()
    }

    @Test(arguments: [1000, 4001])
    func ownCloseIsReportedWhenTheServerDisconnects(_ number: Int) async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            // The client's Close frame: two bytes of head, four of the mask, the code, "BuhBye".
            _ = try await stream.read(minimum: 14, maximum: 14)
            stream.closeWrite()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("open -"))
        let code = try #require(Code(rawValue: number))
        task.cancel(with: code, reason: Data("BuhBye".utf8))
        try await recorder.end()
        #expect(recorder.eventsOfTheTask == ["created", "open -", "close \(number) BuhBye", "metrics", "complete"])
        #expect(task.closeCode == code && task.closeReason == Data("BuhBye".utf8))
        session.invalidateAndCancel()
    }

    @Test(arguments: [(0, nil), (1005, nil), (1006, 1000), (1015, 1000), (70_000, 1000), (-1, 1000), (3999, 3999)])
    func codeThatIsNotForTheWireIsNotSent(_ code: Int, _ sent: Int?) async throws {
        let ended = Outcome<WebSocketEnd>()
        let server = try await ConnectionServer.webSockets { stream in ended.give(try await stream.accept().echo()) }
        let session = URLSession.test()
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await task.sendPing()
        task.cancel(with: Code(rawValue: code) ?? .invalid, reason: nil)
        #expect(try await ended.value().code.map { Int($0.rawValue) } == sent)
        session.invalidateAndCancel()
    }

    @Test func cancelEndsTheTaskWithoutWaiting() async throws {
        let ended = Outcome<WebSocketEnd>()
        let server = try await ConnectionServer.webSockets { stream in ended.give(try await stream.accept().echo()) }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        try await task.sendPing()
        let waiting = Outcome<String>()
        task.receive { waiting.give(WebSocketTaskTests.text($0)) }
        task.cancel()
        #expect(try await waiting.value() == "-999")
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .cancelled && error.failingURL == server.url())
        #expect(recorder.eventsOfTheTask == ["created", "open -", "metrics", "complete"])
        let end = try await ended.value()
        #expect(end.isClean && end.code == nil)
        let later = await #expect(throws: URLError.self) { try await task.send(.string("x")) }
        #expect(later?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func closingTaskCanBeCancelled() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            await gate.pass()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("open -"))
        task.cancel(with: .normalClosure, reason: nil)
        task.cancel()
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        gate.open()
        session.invalidateAndCancel()
    }

    @Test func lostConnectionFailsTheTask() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            stream.closeWrite()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.code == .networkConnectionLost)
        #expect((try await recorder.end().error as? URLError)?.code == .networkConnectionLost)
        #expect(recorder.eventsOfTheTask == ["created", "open -", "metrics", "complete"])
        let again = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(again?.code == .networkConnectionLost && task.closeCode == .invalid)
        session.invalidateAndCancel()
    }

    @Test func protocolViolationOfTheServerFailsTheTask() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            try await stream.write([0xF1, 1, 0x61])
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .networkConnectionLost && task.closeCode == .protocolError)
        #expect(error.userInfo[NSUnderlyingErrorKey] as? POSIXError == POSIXError(.EPROTO))
        session.invalidateAndCancel()
    }

    // MARK: Sizes

    @Test func messageThatIsTooLongIsRefused() async throws {
        let ended = Outcome<WebSocketEnd>()
        let server = try await ConnectionServer.webSockets { stream in
            let socket = try await stream.accept()
            try await socket.send(.data([UInt8](repeating: 1, count: 1 << 20)))
            try await socket.send(.data([UInt8](repeating: 1, count: (1 << 20) + 1)))
            ended.give(await socket.end())
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        #expect(task.maximumMessageSize == 1_048_576)
        task.resume()
        #expect(WebSocketTaskTests.text(try await task.receive()) == "1048576 bytes")
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.code == .dataLengthExceedsMaximum)
        #expect(error?.userInfo[NSUnderlyingErrorKey] as? POSIXError == POSIXError(.EMSGSIZE))
        #expect(error?.localizedDescription.contains("1048576") == true)
        #expect((try await recorder.end().error as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(try await ended.value().code == .messageTooBig && task.closeCode == .messageTooBig)
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true])
    func maximumMessageSizeIsEnforced(_ isSetLater: Bool) async throws {
        let server = try await ConnectionServer.webSockets(WebSocketTaskTests.echo)
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        if !isSetLater { task.maximumMessageSize = 10 }
        task.resume()
        try await task.send(.string("0123456789"))
        #expect(WebSocketTaskTests.text(try await task.receive()) == "0123456789")
        if isSetLater {
            task.maximumMessageSize = 20
            try await task.send(.string("0123456789abcdefghij"))
            #expect(WebSocketTaskTests.text(try await task.receive()) == "0123456789abcdefghij")
        }
        try await task.send(.string("0123456789abcdefghijk"))
        let error = await #expect(throws: URLError.self) { try await task.receive() }
        #expect(error?.code == .dataLengthExceedsMaximum)
    }

    // MARK: Keep-alive

    @Test func pingsKeepTheConnectionAlive() async throws {
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            // Two Pings, masked, of the keep-alive; then the first is answered.
            let first = try await stream.read(minimum: 16, maximum: 16).bytes
            let key = first[2..<6]
            let payload = zip(first[6...], [key, key, key].joined()).map { $0 ^ $1 }
            try await stream.write([0x8A, UInt8(payload.count)] + payload)
            _ = try await stream.read(minimum: 16, maximum: 16)
            try await stream.write([0x81, 1, 0x61])
        }
        let session = URLSession.test()
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: server.url())
        task.pingInterval = 0.05
        task.pongTimeout = 240
        task.resume()
        #expect(WebSocketTaskTests.text(try await task.receive()) == "a")
        #expect(task.pingInterval == 0.05 && task.pongTimeout == 240)
    }

    @Test func serverThatAnswersNoPingIsGivenUp() async throws {
        let gate = Gate()
        let server = try await ConnectionServer.webSockets { stream in
            try await stream.upgrade()
            await gate.pass()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.webSocketTask(with: server.url())
        task.pingInterval = 0.05
        task.pongTimeout = 0.1
        task.resume()
        #expect((try await recorder.end().error as? URLError)?.code == .timedOut)
        gate.open()
        session.invalidateAndCancel()
    }
}
