import Foundation

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
                guard let connection = self.task.connection else { throw self.task.refusal }
                return try await connection.receive()
            }
        }
    }
}
