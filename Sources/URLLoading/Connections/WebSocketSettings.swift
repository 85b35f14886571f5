import Foundation
import SessionTasks
import WebSocketProtocol

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
