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
    var refusal: URLError { (self.driver as? RefusedTask)?.error ?? LoadFailure.error(of: .ended, url: nil) }

    private func refuse(_ handler: @escaping @Sendable (URLError) -> Void) {
        let error = self.refusal
        if let line = self.session?.core.line { line.add { handler(error) } } else { handler(error) }
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
