import TLSEngine

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
    indirect case connectionLost(TransportFault)
    /// No connection came about: name resolution, refusal, unreachable network, our own lack of resources.
    indirect case cannotConnect(TransportFault)
    /// TLS failed: no handshake, a certificate that does not stand verification, or a broken record.
    indirect case secureConnectionFailed(TLSFailure)
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

extension TaskFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed out"
        case .directionClosed: "this direction of the connection was closed"
        case .usage(let text): text
        case .connectionLost(let fault), .cannotConnect(let fault): fault.description
        case .ended: "the task is over"
        case .secureConnectionFailed(let failure): "TLS failed: \(failure)"
        case .handshakeRefused(let status): "the server answered the opening handshake with status \(status)"
        case .protocolViolation(let code, let text): "the peer broke the protocol (close code \(code)): \(text)"
        case .messageTooLong(let limit): "a message is longer than the limit of \(limit) bytes"
        case .peerUnresponsive: "the peer stopped answering"
        case .closed: "the peer closed the connection"
        }
    }
}
