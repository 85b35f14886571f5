import Rooms
import SessionTasks

/// A client's connection for its session: a WebSocket, or a streaming response.
protocol RoomConnection: AnyObject {
    /// Bytes that the connection has not taken.
    var queuedBytes: Int { get }
    /// Bytes that the kernel has taken.
    var sentBytes: UInt64 { get }
    /// Requests a call of the session's `outputProgressed`.
    func awaitProgress()
    /// Sends replies that belong together.
    func send(_ replies: [UInt8])
    func send(_ push: SharedMessage)
    /// `nil` if it is none.
    var webSocket: WebSocketTask? { get }
    func pauseReading()
    func resumeReading()
    /// Ends the connection once the queued bytes are sent.
    func close(_ disconnect: Disconnect)
}

extension RoomConnection {
    var webSocket: WebSocketTask? { nil }
}
