import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WebSocketProtocol

/// Drives a WebSocket task. On the loop, where not said otherwise.
final class WebSocketConnection: ConnectionTaskDriver, @unchecked Sendable {
    let life: ConnectionTaskState
    private let chosen = Mutex(WebSocketSettings())
    /// The socket, for any thread.
    private let shown = Mutex<WebSocketTask?>(nil)
    private var made: WebSocketTask?
    /// `nil` before and after the opening handshake, as the next two are.
    private var opening: WebSocketOpening?
    private var meter: HandshakeTimings?
    private var sentRequest: URLRequest?
    private var redirects = 0
    /// The opening request is on its way.
    private var isAsking = false
    private var isOpen = false
    /// What the program closed with, while the server has not answered that.
    private var ownClose: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)?

    init(_ life: ConnectionTaskState) {
        self.life = life
    }

    /// Made when something is first asked of it: it takes what must wait for the opening handshake.
    var socket: WebSocketTask {
        if let made { return made }
        let socket = WebSocketTask(opening: nil, on: self.life.loop)
        self.made = socket
        self.life.counter = socket.record
        self.shown.withLock { $0 = socket }
        return socket
    }

    // MARK: From any thread

    /// `nil` while nothing was asked of it.
    var shownSocket: WebSocketTask? { self.shown.withLock { $0 } }

    var settings: WebSocketSettings { self.chosen.withLock { $0 } }

    /// The message limit counts at once, all else for the opening handshake that is still to come.
    func set(_ change: (inout WebSocketSettings) -> Void) {
        self.chosen.withLock { change(&$0) }
        self.life.loop.execute {
            guard let socket = self.made else { return }
            var options = socket.options
            options.maximumMessageSize = self.settings.options(timeout: .zero).maximumMessageSize
            socket.set(options)
        }
    }

    // MARK: Life

    func begin() {
        guard let task = self.life.task, let request = task.currentRequest else { return }
        let settings = self.settings
        let timeout = Duration(
            timeout: request.chosenTimeout ?? self.life.core.configuration.timeoutIntervalForRequest)
        self.socket.set(settings.options(timeout: timeout))
        self.socket.openObserver = { self.opened() }
        self.socket.whenPeerClosed { self.peerClosed($0, $1) }
        self.socket.whenEnded { self.ended($0) }
        let opening = WebSocketOpening(request, for: task, of: self.life.session, settings.deflate) {
            (target, url) throws(URLError) in try self.prepare(&target, at: url, for: task, timeout)
        }
        self.opening = opening
        self.life.core.pool.execute {
            opening.next { first in
                self.life.loop.execute { self.judged(first) { if let opening = $0 { self.socket.open(opening) } } }
            }
        }
    }

    func hold() { self.socket.suspendOnLoop() }
    func goOn() { self.socket.resumeOnLoop() }

    func breakOff() {
        self.socket.cancelOnLoop()
        self.life.end(self.life.verdict)
    }

    private func ended(_ end: WebSocketEnd) {
        // Of a handshake that had no answer, or one that broke its rules.
        if let request = self.sentRequest {
            if let head = self.socket.response { _ = self.answered(head) } else { self.note(request, nil) }
        }
        self.opening = nil
        // The server left without a Close frame of its own: the program's is the one that counts.
        if let ownClose, self.life.verdict == nil { self.tellClosed(ownClose.code, ownClose.reason) }
        self.life.end(end.failure.map { self.error($0) })
    }

    func error(_ failure: TaskFailure) -> URLError {
        guard self.life.verdict == nil, !self.isOpen, self.isAsking else { return self.life.error(failure) }
        switch failure {
        case .connectionLost, .protocolViolation: return LoadFailure.handshakeError(failure, url: self.life.url)
        default: return self.life.error(failure)
        }
    }

    // MARK: The opening handshake

    /// From any thread.
    private func prepare(
        _ target: inout OpeningTarget, at url: URL, for task: URLSessionTask, _ timeout: Duration
    ) throws(URLError) {
        target.connectTimeout = timeout
        target.socket.trafficClass = task.currentRequest.map(self.life.core.configuration.trafficClass)
        target.watch = { self.note($0) }
        guard url.isSecureWebSocket else { return }
        switch self.life.core.tlsContext() {
        case .failure(let failure):
            throw LoadFailure.error(.secureConnectionFailed, url: url, cause: failure, text: failure.description)
        case .success(let context):
            target.secure = self.secureSettings(context, at: url, for: task, timeout: timeout)
        }
    }

    private func note(_ step: OpeningStep) {
        switch step {
        case .requested: self.isAsking = true
        case .connected, .failed: self.isAsking = false
        case .securing, .secured, .answered: break
        }
        let now = self.life.loop.now
        self.meter?.note(step) { $0.duration(to: now) }
    }

    /// Goes on as it was decided.
    private func judged(_ judgement: WebSocketOpening.Judgement, _ answer: (ClientOpening?) -> Void) {
        guard self.life.stage != .over else { return answer(nil) }
        switch judgement {
        case .open(var opening, let request, let redirects):
            self.sentRequest = request
            while self.redirects < redirects {
                self.redirects += 1
                self.life.record.countRedirect()
            }
            self.meter = HandshakeTimings(opening.target.place)
            opening.judge = { self.judge($0, $1) }
            answer(opening)
        case .refused: answer(nil)
        case .failed(let error): self.fail(error)
        }
    }

    private func judge(_ head: WebSocketProtocol.ResponseHead, _ answer: @escaping @Sendable (ClientOpening?) -> Void) {
        guard let opening = self.opening, let response = self.answered(head) else { return answer(nil) }
        let lines = head.lines
        self.life.core.pool.execute {
            opening.judge(response, lines) { judgement in
                self.life.loop.execute { self.judged(judgement, answer) }
            }
        }
    }

    /// Shows an answer.
    private func answered(_ head: WebSocketProtocol.ResponseHead) -> HTTPURLResponse? {
        guard let task = self.life.task, let request = self.sentRequest, let url = request.url else { return nil }
        let response = HTTPURLResponse(
            url: url, statusCode: head.status, httpVersion: "HTTP/\(head.version.major).\(head.version.minor)",
            lines: head.lines.map { (name: $0.name, value: $0.value) }, contentIsEncoded: false)
        task.mutate(\.response) { $0.response = response }
        self.note(request, response)
        return response
    }

    private func note(_ request: URLRequest, _ response: HTTPURLResponse?) {
        self.sentRequest = nil
        guard let metrics = self.meter?.take() else { return }
        self.life.record.add(
            TransactionRecord(request: request, response: response, source: .network(metrics), decodedBytes: 0))
    }

    private func opened() {
        let request = self.sentRequest
        self.isOpen = true
        guard let task = self.life.task as? URLSessionWebSocketTask, let head = self.socket.response,
            self.answered(head) != nil
        else { return }
        let lines = head.lines
        if let request, let url = request.url {
            self.life.core.storeCookies(lines, from: url, request: request, of: task)
        }
        if let opening = self.opening { self.life.core.pool.execute { opening.accepted(lines) } }
        self.opening = nil
        let (session, name) = (self.life.session, self.socket.subprotocol)
        self.life.tell(.webSocketOpened) {
            $0.webSocket?.urlSession(session, webSocketTask: task, didOpenWithProtocol: name)
        }
    }

    // MARK: The closing handshake

    private func peerClosed(_ code: WebSocketProtocol.CloseCode?, _ reason: [UInt8]) {
        self.ownClose = nil
        self.tellClosed(
            code.map(URLSessionWebSocketTask.CloseCode.init) ?? .noStatusReceived,
            reason.isEmpty ? nil : Data(reason))
    }

    private func tellClosed(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        guard let task = self.life.task as? URLSessionWebSocketTask else { return }
        let session = self.life.session
        self.life.tell(.webSocketClosed) {
            $0.webSocket?.urlSession(session, webSocketTask: task, didCloseWith: code, reason: reason)
        }
    }

    /// From any thread: begins the closing handshake behind what was sent; a task that is not open is cancelled.
    func close(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        let bytes = reason.map { [UInt8]($0) } ?? []
        self.life.loop.execute {
            guard self.isOpen else { return self.fail(LoadFailure.error(.cancelled, url: self.life.url)) }
            if self.life.stage == .held { self.socket.resumeOnLoop() }
            if self.ownClose == nil, self.socket.stage == .open { self.ownClose = (code, reason) }
            self.socket.close(code.onWire, reason: bytes)
        }
    }
}

extension WebSocketProtocol.ResponseHead {
    fileprivate var lines: [HeaderField] { self.fields.all.map { HeaderField($0.name, $0.value) } }
}

/// What a WebSocket task is asked for, from any thread; in order, and once the opening handshake is done.
extension WebSocketConnection {
    typealias Message = URLSessionWebSocketTask.Message

    func send(_ message: Message, _ handler: @escaping @Sendable ((any Error)?) -> Void) {
        let line = self.life.core.delegateQueue
        let carried = message.carried
        self.life.loop.execute {
            self.socket.send(carried) { result in
                let error = self.error(of: result)
                line.add { handler(error) }
            }
        }
    }

    func receive(_ handler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        let line = self.life.core.delegateQueue
        self.life.loop.execute {
            self.socket.receive { result in
                let told = result.map { Message($0) }.mapError { self.error($0) as any Error }
                line.add { handler(told) }
            }
        }
    }

    func ping(_ handler: @escaping @Sendable ((any Error)?) -> Void) {
        let line = self.life.core.delegateQueue
        self.life.loop.execute {
            self.socket.sendPing([]) { result in
                let error = self.error(of: result)
                line.add { handler(error) }
            }
        }
    }

    private func error<Value>(of result: Result<Value, TaskFailure>) -> URLError? {
        if case .failure(let failure) = result { self.error(failure) } else { nil }
    }

    // MARK: For Swift tasks that wait

    /// Cancelling withdraws a message that has not begun.
    func send(_ message: Message) async throws {
        let carried = message.carried
        let error: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.send(carried) { answer(self.error(of: $0)) }
        } withdraw: {
            self.socket.withdrawSend($0)
        }
        if let error { throw error }
    }

    /// Cancelling loses no message: one that was not given out goes to the next who asks.
    /// - Returns: `nil` after a clean end.
    func receive() async throws -> Message? {
        let result: Result<Message?, URLError> = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.receive { result in
                switch result {
                case .success(let message): answer(.success(Message(message)))
                case .failure(.closed) where self.life.verdict == nil: answer(.success(nil))
                case .failure(let failure): answer(.failure(self.error(failure)))
                }
            }
        } withdraw: {
            self.socket.withdrawReceive($0)
        }
        return try result.get()
    }

    /// Cancelling ends the wait.
    func ping() async throws {
        let error: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.socket.sendPing([]) { answer(self.error(of: $0)) }
        } withdraw: {
            self.socket.withdrawSend($0)
        }
        if let error { throw error }
    }
}

extension URLSessionWebSocketTask.Message {
    init(_ message: WebSocketTask.Message) {
        self =
            switch message {
            case .data(let bytes): .data(Data(bytes))
            case .string(let text): .string(text)
            }
    }

    var carried: WebSocketTask.Message {
        switch self {
        case .data(let data): .data([UInt8](data))
        case .string(let text): .string(text)
        }
    }
}

extension URLSessionWebSocketTask.CloseCode {
    init(_ code: WebSocketProtocol.CloseCode) {
        self.init(number: Int(code.rawValue))
    }

    /// `nil` for a Close frame without a code. Others that may not go over the wire are sent as 1000.
    var onWire: WebSocketProtocol.CloseCode? {
        switch self {
        case .invalid, .noStatusReceived: nil
        default: WebSocketProtocol.CloseCode(rawValue: UInt16(exactly: self.rawValue) ?? 1000)
        }
    }
}

/// What a program sets on a WebSocket task.
struct WebSocketSettings: Sendable {
    var maximumMessageSize = 1 << 20
    /// In seconds; 0 for none.
    var pingInterval: TimeInterval = 0
    var pongTimeout: TimeInterval = 20
    var offersCompression = false

    /// - Parameter timeout: for the opening handshake.
    func options(timeout: Duration) -> WebSocketOptions {
        var options = WebSocketOptions()
        options.maximumMessageSize = max(0, self.maximumMessageSize)
        options.pingInterval = self.pingInterval > 0 ? Duration(timeout: self.pingInterval) : nil
        options.pongTimeout = Duration(timeout: self.pongTimeout)
        options.handshakeTimeout = timeout
        return options
    }

    var deflate: DeflatePolicy? { self.offersCompression ? DeflatePolicy() : nil }
}
