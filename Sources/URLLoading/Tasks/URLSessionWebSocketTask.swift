import Foundation
import SessionTasks

/// A WebSocket: messages that queue both ways (RFC 6455).
///
/// What is asked for before the opening handshake is done waits for it, and runs in order. Handlers run on the delegate
/// queue, each once. Pings of the server are answered without help. Once the WebSocket has ended everything that waits
/// or is asked for fails: with the task's error if there is one, else with `URLError.networkConnectionLost`; messages
/// that came before are still given out.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    var connection: WebSocketConnection? { self.driver as? WebSocketConnection }

    /// Why nothing can be done with a task that has no connection.
    var unavailableError: URLError { (self.driver as? RefusedTask)?.error ?? LoadFailure.error(of: .ended, url: nil) }

    private func refuse(_ handler: @escaping @Sendable (URLError) -> Void) {
        let error = self.unavailableError
        if let line = self.session?.core.delegateQueue { line.add { handler(error) } } else { handler(error) }
    }

    /// Payload of messages, in bytes, as the next is; who observes them hears of the end alone.
    open override var countOfBytesReceived: Int64 {
        let known = super.countOfBytesReceived
        return self.connection?.shownSocket.map { Int64(clamping: $0.record.bytesReceived) } ?? known
    }

    open override var countOfBytesSent: Int64 {
        let known = super.countOfBytesSent
        return self.connection?.shownSocket.map { Int64(clamping: $0.record.bytesSent) } ?? known
    }

    // MARK: Messages

    /// Sends one message behind those before it.
    /// - Parameter completionHandler: called when the system has taken all of it, or with what went wrong.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let connection else { return self.refuse { completionHandler($0) } }
        connection.send(message, completionHandler)
    }

    /// Takes the next whole message; who asks first is served first. Messages that come while nobody asks are kept, until
    /// 64 or `maximumMessageSize` bytes wait: then the server has to.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        guard let connection else { return self.refuse { completionHandler(.failure($0)) } }
        connection.receive(completionHandler)
    }

    /// Sends a Ping. 1024 can wait at a time.
    /// - Parameter pongReceiveHandler: called when its Pong came, in the order of the Pings; or with what went wrong.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let connection else { return self.refuse { pongReceiveHandler($0) } }
        connection.ping(pongReceiveHandler)
    }

    // MARK: Closing

    /// Begins the closing handshake behind what was sent. The task ends when the server has answered, or after 5 s; one
    /// that is not open is cancelled.
    /// - Parameters:
    ///   - closeCode: `invalid` and `noStatusReceived` send none; others that are not for the wire are sent as 1000.
    ///   - reason: UTF-8, cut to 123 bytes.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard self.beginCancelling() else { return }
        guard let connection else { return self.driver?.cancelled() ?? () }
        connection.close(closeCode, reason)
    }

    /// Ends the task with `URLError.cancelled`, and tells the server by a Close frame without a code.
    open override func cancel() {
        // Whoever began the closing handshake need not wait for its end.
        guard self.beginCancelling() || self.state == .canceling else { return }
        self.driver?.cancelled()
    }

    /// Of the Close frame that came or went first; `noStatusReceived` if it had none, `invalid` while there was none.
    open var closeCode: CloseCode {
        self.connection?.shownSocket?.closeCode.map { CloseCode($0) } ?? .invalid
    }

    /// In that Close frame; `nil` for none.
    open var closeReason: Data? { self.connection?.shownSocket?.closeReason.map { Data($0) } }

    // MARK: What may be set

    /// Of a message that comes, in bytes over all its fragments; 1 MiB (1 048 576) by default. A longer one ends the task
    /// with `URLError.dataLengthExceedsMaximum`, and the WebSocket with code 1009.
    open var maximumMessageSize: Int {
        get { self.connection?.settings.maximumMessageSize ?? 1 << 20 }
        set { self.connection?.set { $0.maximumMessageSize = newValue } }
    }
}

/// For Swift tasks that wait; without the delegate queue between.
extension URLSessionWebSocketTask {
    /// Sends one message; returns when the system has taken all of it.
    ///
    /// Cancelling the Swift task withdraws the message if it had not begun; one that has begun goes out whole.
    /// - Throws: `URLError`.
    public func send(_ message: Message) async throws {
        guard let connection else { throw self.unavailableError }
        try await connection.send(message)
    }

    /// The next whole message.
    ///
    /// Cancelling the Swift task ends the wait with `URLError.cancelled`, and loses no message.
    /// - Throws: `URLError`.
    public func receive() async throws -> Message {
        guard let connection else { throw self.unavailableError }
        guard let message = try await connection.receive() else {
            throw LoadFailure.error(of: .closed, url: self.currentRequest?.url)
        }
        return message
    }

    /// Sends a Ping; returns when its Pong is there.
    ///
    /// Cancelling the Swift task ends the wait. As in Foundation on Linux; other platforms have the form with a handler
    /// alone.
    /// - Throws: `URLError`.
    public func sendPing() async throws {
        guard let connection else { throw self.unavailableError }
        try await connection.ping()
    }
}

extension URLSessionWebSocketTask {
    /// Why a WebSocket is closed (RFC 6455 §7.4). Any number can be one: programs have 3000 to 4999 for themselves.
    public struct CloseCode: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int

        /// Never `nil`: that it could be is what programs expect.
        public init?(rawValue: Int) { self.rawValue = rawValue }

        init(number: Int) { self.rawValue = number }

        /// There is none.
        public static let invalid = CloseCode(number: 0)
        public static let normalClosure = CloseCode(number: 1000)
        public static let goingAway = CloseCode(number: 1001)
        public static let protocolError = CloseCode(number: 1002)
        public static let unsupportedData = CloseCode(number: 1003)
        public static let noStatusReceived = CloseCode(number: 1005)
        public static let abnormalClosure = CloseCode(number: 1006)
        public static let invalidFramePayloadData = CloseCode(number: 1007)
        public static let policyViolation = CloseCode(number: 1008)
        public static let messageTooBig = CloseCode(number: 1009)
        public static let mandatoryExtensionMissing = CloseCode(number: 1010)
        public static let internalServerError = CloseCode(number: 1011)
        public static let tlsHandshakeFailure = CloseCode(number: 1015)
    }

    /// One whole message.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }
}

/// Ours: other platforms do not have these.
extension URLSessionWebSocketTask {
    /// Seconds between Pings that keep the connection alive and find out whether it is; 0, the default, sends none. To be
    /// set before the task is first resumed.
    public var pingInterval: TimeInterval {
        get { self.connection?.settings.pingInterval ?? 0 }
        set { self.connection?.set { $0.pingInterval = newValue } }
    }

    /// Seconds for which the server may be silent after such a Ping; 20 by default. Then the task ends with
    /// `URLError.timedOut`.
    public var pongTimeout: TimeInterval {
        get { self.connection?.settings.pongTimeout ?? 0 }
        set { self.connection?.set { $0.pongTimeout = newValue } }
    }

    /// Whether the server is offered to compress messages (permessage-deflate, RFC 7692); `false` by default. To be set
    /// before the task is first resumed. Whether it accepted is in the response's `Sec-WebSocket-Extensions`.
    public var offersCompression: Bool {
        get { self.connection?.settings.offersCompression ?? false }
        set { self.connection?.set { $0.offersCompression = newValue } }
    }

    /// The messages that come, until the WebSocket is closed in order; another end is thrown. For one reader at a time:
    /// several share the messages.
    public var messages: Messages { Messages(task: self) }

    /// Messages in the order in which they come.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message

        let task: URLSessionWebSocketTask

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task: self.task) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let task: URLSessionWebSocketTask

            /// - Returns: `nil` once both ends have closed.
            /// - Throws: `URLError`; `cancelled` when the Swift task is.
            public mutating func next() async throws -> Message? {
                guard let connection = self.task.connection else { throw self.task.unavailableError }
                return try await connection.receive()
            }
        }
    }
}

/// One whole message, as an object. `URLSessionWebSocketTask.Message` is what tasks take and give.
open class NSURLSessionWebSocketMessage: NSObject, @unchecked Sendable {
    /// One of the two that is asked for; the other is `nil`.
    public let data: Data?
    public let string: String?

    public init(data: Data) {
        self.data = data
        self.string = nil
        super.init()
    }

    public init(string: String) {
        self.data = nil
        self.string = string
        super.init()
    }

    public convenience init(_ message: URLSessionWebSocketTask.Message) {
        switch message {
        case .data(let data): self.init(data: data)
        case .string(let text): self.init(string: text)
        }
    }

    open var type: NSURLSessionWebSocketMessageType { self.string == nil ? .data : .string }
}

extension URLSessionWebSocketTask.Message {
    public init(_ message: NSURLSessionWebSocketMessage) {
        self = message.string.map { .string($0) } ?? .data(message.data ?? Data())
    }
}

/// What a WebSocket's message holds.
public enum NSURLSessionWebSocketMessageType: Int, Sendable {
    case data = 0
    case string = 1
}
