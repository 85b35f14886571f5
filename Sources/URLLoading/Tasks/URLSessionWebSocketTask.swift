import Foundation
import SessionTasks

/// A WebSocket (RFC 6455) with message queues in both directions.
///
/// Operations requested before the opening handshake completes wait for it and run in order. Handlers run on the
/// delegate queue, each once. The server's Pings are answered automatically. When the WebSocket has ended, queued and
/// later operations fail with the task's error if there is one, otherwise with `URLError.networkConnectionLost`;
/// messages received before can still be read.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {  // Not final; thread-safe.
    var connection: WebSocketConnection? { self.driver as? WebSocketConnection }

    /// The error of operations on a task without a connection.
    var unavailableError: URLError { (self.driver as? RefusedTask)?.error ?? LoadFailure.error(of: .ended, url: nil) }

    private func fail(_ handler: @escaping @Sendable (URLError) -> Void) {
        let error = self.unavailableError
        self.onDelegateQueue { handler(error) }
    }

    /// Bytes of message payload. Observers of this property and the next are notified only when the task ends.
    open override var countOfBytesReceived: Int64 {
        let final = super.countOfBytesReceived
        return self.connection?.currentSocket.map { Int64(clamping: $0.record.bytesReceived) } ?? final
    }

    open override var countOfBytesSent: Int64 {
        let final = super.countOfBytesSent
        return self.connection?.currentSocket.map { Int64(clamping: $0.record.bytesSent) } ?? final
    }

    // MARK: Messages

    /// Queues one message for sending.
    /// - Parameter completionHandler: called when the kernel has accepted the whole message, or with the error.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let connection else { return self.fail { completionHandler($0) } }
        connection.send(message, completionHandler)
    }

    /// Receives the next message; calls are served in order. Messages are queued until one is requested. Reading from
    /// the socket pauses while 64 messages or `maximumMessageSize` bytes are queued.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        guard let connection else { return self.fail { completionHandler(.failure($0)) } }
        connection.receive(completionHandler)
    }

    /// Sends a Ping. At most 1024 can be pending.
    /// - Parameter pongReceiveHandler: called when the Pong arrives, in the order of the Pings; or with the error.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let connection else { return self.fail { pongReceiveHandler($0) } }
        connection.ping(pongReceiveHandler)
    }

    // MARK: Closing

    /// Starts the closing handshake after all queued messages. The task ends when the server answers, or after 5 s. A
    /// task that is not open is cancelled.
    /// - Parameters:
    ///   - closeCode: `invalid` and `noStatusReceived` send no code; other codes not allowed on the wire become 1000.
    ///   - reason: UTF-8, truncated to 123 bytes.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard self.beginCancelling() else { return }
        guard let connection else { return self.driver?.cancelled() ?? () }
        connection.close(closeCode, reason)
    }

    /// Ends the task with `URLError.cancelled` and sends a Close frame without a code.
    open override func cancel() {
        // Also cuts a closing handshake short.
        guard self.beginCancelling() || self.state == .canceling else { return }
        self.driver?.cancelled()
    }

    /// The code of the first Close frame received or sent: `noStatusReceived` if it had none, `invalid` before any.
    open var closeCode: CloseCode {
        self.connection?.currentSocket?.closeCode.map { CloseCode($0) } ?? .invalid
    }

    /// The reason in that Close frame; `nil` for none.
    open var closeReason: Data? { self.connection?.currentSocket?.closeReason.map { Data($0) } }

    // MARK: Settings

    /// Limit for a received message, in bytes over all its fragments; 1 MiB (1 048 576) by default. A longer message
    /// ends the task with `URLError.dataLengthExceedsMaximum`, and the WebSocket with code 1009.
    open var maximumMessageSize: Int {
        get { self.connection?.settings.maximumMessageSize ?? 1 << 20 }
        set { self.connection?.set { $0.maximumMessageSize = newValue } }
    }
}

/// The asynchronous forms, without a detour through the delegate queue.
extension URLSessionWebSocketTask {
    /// Sends one message; returns when the kernel has accepted all of it.
    ///
    /// Cancelling the Swift task withdraws the message if sending has not started; otherwise it is sent whole.
    /// - Throws: `URLError`.
    public func send(_ message: Message) async throws {
        guard let connection else { throw self.unavailableError }
        try await connection.send(message)
    }

    /// Receives the next message.
    ///
    /// Cancelling the Swift task ends the wait with `URLError.cancelled`; no message is lost.
    /// - Throws: `URLError`; after the server's Close frame, when the delegate's `didCloseWith` has returned.
    public func receive() async throws -> Message {
        guard let connection else { throw self.unavailableError }
        guard let message = try await connection.receive() else {
            throw LoadFailure.error(of: .closed, url: self.currentRequest?.url)
        }
        return message
    }

    /// Sends a Ping; returns when its Pong arrives.
    ///
    /// Cancelling the Swift task ends the wait. As in Foundation on Linux; other platforms have only the form with a
    /// handler.
    /// - Throws: `URLError`.
    public func sendPing() async throws {
        guard let connection else { throw self.unavailableError }
        try await connection.ping()
    }
}

extension URLSessionWebSocketTask {
    /// Why a WebSocket is closed (RFC 6455 §7.4). Any number is accepted: 3000 to 4999 are for applications.
    public struct CloseCode: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int

        /// Never `nil`; failable for source compatibility with Foundation.
        public init?(rawValue: Int) { self.rawValue = rawValue }

        init(number: Int) { self.rawValue = number }

        /// No Close frame.
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

/// Extensions that Foundation does not have.
extension URLSessionWebSocketTask {
    /// Seconds between keep-alive Pings; 0, the default, sends none. Set it before the task is first resumed.
    public var pingInterval: TimeInterval {
        get { self.connection?.settings.pingInterval ?? 0 }
        set { self.connection?.set { $0.pingInterval = newValue } }
    }

    /// Seconds that the server may be silent after a keep-alive Ping before the task ends with `URLError.timedOut`; 20
    /// by default.
    public var pongTimeout: TimeInterval {
        get { self.connection?.settings.pongTimeout ?? 0 }
        set { self.connection?.set { $0.pongTimeout = newValue } }
    }

    /// Whether the opening handshake offers compression (permessage-deflate, RFC 7692); `false` by default. Set it
    /// before the task is first resumed. The response's `Sec-WebSocket-Extensions` shows whether the server accepted.
    public var offersCompression: Bool {
        get { self.connection?.settings.offersCompression ?? false }
        set { self.connection?.set { $0.offersCompression = newValue } }
    }

    /// The received messages, until the WebSocket is closed cleanly; any other end is thrown. Several readers at a time
    /// share the messages.
    public var messages: Messages { Messages(task: self) }

    /// The messages in the order of their arrival.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message

        let task: URLSessionWebSocketTask

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task: self.task) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let task: URLSessionWebSocketTask

            /// - Returns: `nil` after a clean close.
            /// - Throws: `URLError`; `cancelled` if the Swift task is cancelled.
            public mutating func next() async throws -> Message? {
                guard let connection = self.task.connection else { throw self.task.unavailableError }
                return try await connection.receive()
            }
        }
    }
}

/// One whole message as an object. Tasks use `URLSessionWebSocketTask.Message`.
open class NSURLSessionWebSocketMessage: NSObject, @unchecked Sendable {  // Not final; thread-safe.
    /// The payload of a binary message; `nil` for a text message, whose payload is in `string`.
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

/// The kind of a WebSocket message.
public enum NSURLSessionWebSocketMessageType: Int, Sendable {
    case data = 0
    case string = 1
}
