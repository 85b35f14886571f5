import Foundation
import SessionTasks

/// For Swift tasks that wait; without the delegate queue between.
extension URLSessionWebSocketTask {
    /// Sends one message; returns when the system has taken all of it.
    ///
    /// Cancelling the Swift task withdraws the message if it had not begun; one that has begun goes out whole.
    /// - Throws: `URLError`.
    public func send(_ message: Message) async throws {
        guard let connection else { throw self.refusal }
        try await connection.send(message)
    }

    /// The next whole message.
    ///
    /// Cancelling the Swift task ends the wait with `URLError.cancelled`, and loses no message.
    /// - Throws: `URLError`.
    public func receive() async throws -> Message {
        guard let connection else { throw self.refusal }
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
        guard let connection else { throw self.refusal }
        try await connection.ping()
    }
}
