/// What to do on one side of a tunnel. What was written before stays in front, except in `fail` and `reset`.
package enum SideOrder: Hashable, Sendable {
    /// Stream: FIN or close_notify behind all queued bytes; go on reading.
    case finishOutput
    /// WebSocket: an empty binary message behind all queued ones; go on reading.
    case sendEndMark
    /// WebSocket: begin the closing handshake behind all queued messages; go on reading until its Close comes.
    case sendClose(CloseSignal)
    /// `sendEndMark`, then `sendClose`.
    case sendEndMarkThenClose(CloseSignal)
    /// WebSocket: answer its Close behind all queued messages, then end the connection (RFC 6455 §7.1.1).
    case answerClose(CloseSignal)
    /// Send what is queued, then end the connection cleanly; nothing more is read. On a WebSocket both Close frames are
    /// exchanged already.
    case close
    /// WebSocket: fail the connection (RFC 6455 §7.1.7). Drop queued messages, send this Close at the next frame
    /// boundary, end.
    case fail(CloseSignal)
    /// End at once so that the peer cannot take it for a clean end: RST, no close_notify, no Close.
    case reset
}
