/// Why a task, or one of its operations, failed. Whose fault it was can be read off the case.
public enum TaskFailure: Error, Hashable, Sendable {
    /// The task was cancelled.
    case cancelled
    /// The operation's deadline passed.
    case timedOut
    /// A read after `closeRead`, or a write after `closeWrite`.
    case directionClosed
    /// The arguments cannot be meant; the text says what is wrong.
    case usage(String)
    /// The task is over, or its transport was captured: nothing can be done with it any more.
    case ended
    /// The peer ended the connection without the closing handshake, or reset it.
    case connectionLost(String)
    /// No connection came about: name resolution, refusal, unreachable network.
    case cannotConnect(String)
    /// TLS failed, in OpenSSL's words or those of the verification.
    case secureConnectionFailed(String)
    /// The peer's answer to the opening handshake was not an acceptance.
    case handshakeRefused(status: Int)
    /// The peer broke a rule of the protocol; the connection was failed with this close code.
    case protocolViolation(closeCode: UInt16, String)
    /// A message would be longer than the task's `maximumMessageSize`; the connection was failed with 1009.
    case messageTooLong(limit: Int)
    /// The peer did not answer a keep-alive ping in time.
    case peerUnresponsive
    /// The peer closed the WebSocket; code and reason are the task's `closeCode` and `closeReason`.
    case closed
}
