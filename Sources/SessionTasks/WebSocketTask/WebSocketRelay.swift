import StreamTransport
import WebSocketProtocol

/// Takes a WebSocket's frames as they come, on its loop, in place of the task's queue of messages: no message is
/// assembled.
package protocol WebSocketRelay: OutputSource {
    /// The opening handshake is done; frames may be sent from now on.
    func webSocketOpened()
    /// Payload of a data frame, or a part of it, come by `task` over `transport`, which are given so that an answer need
    /// not look them up anew for each. `bytes` are valid only during the call.
    func received(_ mark: FrameMark, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport)
    /// The peer's Close frame came.
    /// - Returns: whether the task is to answer it at once (unless our Close had gone out before). A relay that says no
    ///   answers later with `answerClose`, or ends the task another way.
    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool
    /// The kernel took queued bytes.
    func outputProgressed()
    /// Called once, last.
    func webSocketEnded(_ end: WebSocketEnd)
}
