import Foundation

/// Hears of the two ends of a WebSocket.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The opening handshake is done.
    /// - Parameter protocol: the subprotocol that the server chose; `nil` for none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The peer's Close frame has come; one without a code tells `noStatusReceived`.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        LeftOut.call()
    }

    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        LeftOut.call()
    }
}
