import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WebSocketProtocol
import WireText

/// Drives a WebSocket task. Confined to the loop unless stated otherwise.
final class WebSocketConnection: ConnectionTaskDriver, @unchecked Sendable {  // Its vars are used on the loop only.
    typealias Message = URLSessionWebSocketTask.Message

    let taskState: ConnectionTaskState
    private let settingsStore = Mutex(WebSocketSettings())
    /// `existingSocket`, for any thread.
    private let sharedSocket = Mutex<WebSocketTask?>(nil)
    private var existingSocket: WebSocketTask?
    // These are `nil` except during the opening handshake.
    private var opening: WebSocketOpening?
    private var timings: HandshakeTimings?
    private var sentRequest: URLRequest?
    private var redirects = 0
    /// The opening request was sent on the current connection.
    private var isRequestSent = false
    private var isOpen = false
    /// A redirect or a challenge may follow, which does not wait for connectivity. Read on any thread.
    private let hasConnected = Atomic(false)
    /// The program's close code and reason, until the server's Close frame arrives.
    private var localClose: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)?
    /// `didCloseWith` was added to the delegate queue.
    private var isCloseReported = false

    init(_ taskState: ConnectionTaskState) {
        self.taskState = taskState
    }

    /// Created on first use: it queues operations until the opening handshake is complete.
    var socket: WebSocketTask {
        if let existingSocket { return existingSocket }
        let socket = WebSocketTask(opening: nil, on: self.taskState.loop)
        self.existingSocket = socket
        self.taskState.taskRecord = socket.record
        self.sharedSocket.withLock { $0 = socket }
        return socket
    }

    // MARK: From any thread

    /// `nil` before first use.
    var currentSocket: WebSocketTask? { self.sharedSocket.withLock { $0 } }

    var settings: WebSocketSettings { self.settingsStore.withLock { $0 } }

    /// The message limit takes effect immediately, other settings with the opening handshake.
    func set(_ change: (inout WebSocketSettings) -> Void) {
        self.settingsStore.withLock { change(&$0) }
        self.taskState.loop.execute {
            guard let socket = self.existingSocket else { return }
            var options = socket.options
            options.maximumMessageSize = self.settings.options(timeout: .zero).maximumMessageSize
            socket.set(options)
        }
    }

    // MARK: ConnectionTaskDriver

    func begin() {
        guard let task = self.taskState.task, let request = task.latestRequest else { return }
        let settings = self.settings
        let timeout = self.taskState.core.requestSettings.timeout(of: request)
        self.socket.set(settings.options(timeout: timeout))
        self.socket.openObserver = { self.opened() }
        self.socket.whenPeerClosed { self.peerClosed($0, $1) }
        self.socket.whenEnded { self.ended($0) }
        let opening = WebSocketOpening(request, for: task, of: self.taskState.session, settings.deflate) {
            (target, url) throws(URLError) in try self.prepare(&target, at: url, for: task, timeout)
        }
        self.opening = opening
        self.taskState.core.executor.execute {
            opening.next { first in
                self.taskState.loop.execute {
                    self.perform(first) { if let opening = $0 { self.socket.open(opening) } }
                }
            }
        }
    }

    func suspend() { self.socket.suspendOnLoop() }
    func resume() { self.socket.resumeOnLoop() }

    func cancelConnection() {
        self.socket.cancelOnLoop()
        self.taskState.end(self.taskState.finalError)
    }

    private func ended(_ end: WebSocketEnd) {
        // The handshake had no response, or an invalid one.
        if let request = self.sentRequest {
            if let head = self.socket.response {
                _ = self.publishResponse(head)
            } else {
                self.recordTransaction(request, nil)
            }
        }
        self.opening = nil
        // The server sent no Close frame: the delegate gets the program's close code.
        if let localClose, self.taskState.finalError == nil { self.notifyClosed(localClose.code, localClose.reason) }
        self.taskState.end(end.failure.map { self.error($0) })
    }

    func error(_ failure: TaskFailure) -> URLError {
        guard self.taskState.finalError == nil, !self.isOpen, self.isRequestSent else {
            return self.taskState.error(failure)
        }
        switch failure {
        case .connectionLost, .protocolViolation: return LoadFailure.handshakeError(failure, url: self.taskState.url)
        default: return self.taskState.error(failure)
        }
    }

    // MARK: The opening handshake

    /// From any thread.
    private func prepare(
        _ target: inout OpeningTarget, at url: URL, for task: URLSessionTask, _ timeout: Duration
    ) throws(URLError) {
        target.connectTimeout = timeout
        target.socket.trafficClass = task.latestRequest.map(self.taskState.core.requestSettings.trafficClass)
        target.watch = { self.record($0) }
        let taskState = self.taskState
        let isMeasured = taskState.core.delegates(for: task).contains { $0.mayImplement(.metrics) }
        target.path = taskState.core.networkSettings.path(for: task.latestRequest, isReported: isMeasured)
        target.waitsForPath =
            taskState.core.networkSettings.waits && !self.hasConnected.load(ordering: .relaxed)
        target.selectProxies = taskState.core.proxySelection(
            for: url, scheme: url.isSecureWebSocket ? "wss" : "ws", task: task, session: taskState.session
        ) { error in
            taskState.loop.execute { self.fail(error) }
        }
        guard url.isSecureWebSocket else { return }
        switch self.taskState.core.http11TLSContext() {
        case .failure(let failure):
            throw LoadFailure.error(ofContext: failure, url: url)
        case .success(let context):
            target.secure = self.secureSettings(context, at: url, for: task, timeout: timeout)
        }
    }

    private func record(_ step: OpeningStep) {
        switch step {
        case .requested: self.isRequestSent = true
        case .connected:
            self.isRequestSent = false
            self.hasConnected.store(true, ordering: .relaxed)
        case .failed: self.isRequestSent = false
        case .waiting: self.taskState.waitingForConnectivity()
        case .began, .resolved, .took, .securedProxy, .tunnelled, .securing, .secured, .answered: break
        }
        self.timings?.record(step)
    }

    private func perform(_ decision: WebSocketOpening.Decision, _ completion: (ClientOpening?) -> Void) {
        guard self.taskState.stage != .ended else { return completion(nil) }
        switch decision {
        case .open(var opening, let request, let redirects):
            self.sentRequest = request
            while self.redirects < redirects {
                self.redirects += 1
                self.taskState.record.countRedirect()
            }
            self.timings = HandshakeTimings()
            opening.judge = { self.responseReceived($0, $1) }
            completion(opening)
        case .refused: completion(nil)
        case .failed(let error): self.fail(error)
        }
    }

    private func responseReceived(
        _ head: ResponseHead, _ completion: @escaping @Sendable (ClientOpening?) -> Void
    ) {
        let certificate = self.timings?.metrics?.connection?.tls?.peerChain.first
        guard let opening = self.opening, let response = self.publishResponse(head) else { return completion(nil) }
        let lines = head.fields.all
        self.taskState.core.executor.execute {
            opening.responseReceived(response, lines, certificate: certificate) { decision in
                self.taskState.loop.execute { self.perform(decision, completion) }
            }
        }
    }

    /// Sets `task.response` and records the transaction.
    private func publishResponse(_ head: ResponseHead) -> HTTPURLResponse? {
        guard let task = self.taskState.task, let request = self.sentRequest, let url = request.url else { return nil }
        let response = HTTPURLResponse(
            url: url, statusCode: head.status, httpVersion: "HTTP/\(head.version.major).\(head.version.minor)",
            lines: head.fields.all.map { (name: $0.name, value: $0.value) }, contentIsEncoded: false)
        task.mutate(\.response) { $0.response = response }
        self.recordTransaction(request, response)
        return response
    }

    private func recordTransaction(_ request: URLRequest, _ response: HTTPURLResponse?) {
        self.sentRequest = nil
        guard let metrics = self.timings?.take() else { return }
        self.taskState.record.add(
            TransactionRecord(request: request, response: response, source: .network(metrics), decodedBytes: 0))
    }

    private func opened() {
        let request = self.sentRequest
        self.isOpen = true
        guard let task = self.taskState.task as? URLSessionWebSocketTask, let head = self.socket.response,
            self.publishResponse(head) != nil
        else { return }
        let lines = head.fields.all
        if let request, let url = request.url {
            self.taskState.core.storeCookies(lines, from: url, request: request, of: task)
        }
        if let opening = self.opening { self.taskState.core.executor.execute { opening.accepted(lines) } }
        self.opening = nil
        let (session, name) = (self.taskState.session, self.socket.subprotocol)
        self.taskState.notifyDelegate(.webSocketOpened) {
            $0.webSocket?.urlSession(session, webSocketTask: task, didOpenWithProtocol: name)
        }
    }

    // MARK: The closing handshake

    private func peerClosed(_ code: WebSocketProtocol.CloseCode?, _ reason: [UInt8]) {
        self.localClose = nil
        self.notifyClosed(
            code.map(URLSessionWebSocketTask.CloseCode.init) ?? .noStatusReceived,
            reason.isEmpty ? nil : Data(reason))
    }

    private func notifyClosed(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        guard let task = self.taskState.task as? URLSessionWebSocketTask else { return }
        let session = self.taskState.session
        self.isCloseReported = self.taskState.notifyDelegate(.webSocketClosed) {
            $0.webSocket?.urlSession(session, webSocketTask: task, didCloseWith: code, reason: reason)
        }
    }

    /// From any thread: starts the closing handshake after queued messages; cancels a task that is not open.
    func close(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        let bytes = reason.map { [UInt8]($0) } ?? []
        self.taskState.loop.execute {
            guard self.isOpen else { return self.fail(LoadFailure.error(.cancelled, url: self.taskState.url)) }
            if self.taskState.stage == .suspended { self.socket.resumeOnLoop() }
            if self.localClose == nil, self.socket.stage == .open { self.localClose = (code, reason) }
            self.socket.close(code.wireCode, reason: bytes)
        }
    }

    // MARK: Operations, from any thread; they run in order, after the opening handshake

    func send(_ message: Message, _ handler: @escaping @Sendable ((any Error)?) -> Void) {
        let wireMessage = message.wireMessage
        self.taskState.loop.execute {
            self.socket.send(wireMessage) { result in
                let error = self.error(of: result)
                self.taskState.onDelegateQueue { handler(error) }
            }
        }
    }

    func receive(_ handler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        self.taskState.loop.execute {
            self.socket.receive { result in
                let outcome = result.map { Message($0) }.mapError { self.error($0) as any Error }
                self.taskState.onDelegateQueue { handler(outcome) }
            }
        }
    }

    func ping(_ handler: @escaping @Sendable ((any Error)?) -> Void) {
        self.taskState.loop.execute {
            self.socket.sendPing([]) { result in
                let error = self.error(of: result)
                self.taskState.onDelegateQueue { handler(error) }
            }
        }
    }

    private func error<Value>(of result: Result<Value, TaskFailure>) -> URLError? {
        if case .failure(let failure) = result { self.error(failure) } else { nil }
    }

    // MARK: Asynchronous

    /// Cancelling withdraws a message that was not begun to be sent.
    func send(_ message: Message) async throws {
        let wireMessage = message.wireMessage
        let error: URLError? = await AwaitedOperation.perform(on: self.taskState.loop) { completion in
            self.socket.send(wireMessage) { completion(self.error(of: $0)) }
        } withdraw: {
            self.socket.withdrawSend($0)
        }
        if let error { throw error }
    }

    /// Cancelling loses no message: the next `receive` returns it.
    /// - Returns: `nil` after a clean end.
    func receive() async throws -> Message? {
        let result: Result<Message?, URLError> = await AwaitedOperation.perform(on: self.taskState.loop) { completion in
            self.socket.receive { result in
                switch result {
                case .success(let message): completion(.success(Message(message)))
                case .failure(.closed) where self.taskState.finalError == nil: self.afterCloseReport(completion)
                case .failure(let failure): completion(.failure(self.error(failure)))
                }
            }
        } withdraw: {
            self.socket.withdrawReceive($0)
        }
        return try result.get()
    }

    /// Reports the end of the messages after the delegate got the close code: a program that stops at the end would
    /// otherwise not know the code, or take the connection for lost.
    private func afterCloseReport(_ completion: @escaping @Sendable (Result<Message?, URLError>) -> Void) {
        guard self.isCloseReported else { return completion(.success(nil)) }
        self.taskState.onDelegateQueue { completion(.success(nil)) }
    }

    /// Cancelling ends the wait.
    func ping() async throws {
        let error: URLError? = await AwaitedOperation.perform(on: self.taskState.loop) { completion in
            self.socket.sendPing([]) { completion(self.error(of: $0)) }
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

    fileprivate var wireMessage: WebSocketTask.Message {
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

    /// `nil` for a Close frame without a code. Other codes that must not be sent become 1000.
    fileprivate var wireCode: WebSocketProtocol.CloseCode? {
        switch self {
        case .invalid, .noStatusReceived: nil
        default: WebSocketProtocol.CloseCode(rawValue: UInt16(exactly: self.rawValue) ?? 1000)
        }
    }
}

/// The settings of a WebSocket task.
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
