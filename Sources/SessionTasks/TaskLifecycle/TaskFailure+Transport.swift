import StreamTransport

extension TaskFailure {
    /// The task's view of a failed transport.
    init(_ failure: TransportFailure) {
        switch failure {
        case .reset, .truncated, .system: self = .connectionLost(failure.description)
        case .peerUnresponsive: self = .peerUnresponsive
        case .deadlinePassed: self = .timedOut
        case .nameResolution, .refused, .unreachable, .notPermitted: self = .cannotConnect(failure.description)
        case .tls(let text): self = .secureConnectionFailed(text)
        }
    }

    init(_ end: TransportEnd) {
        switch end {
        case .closed: self = .ended
        case .abandoned: self = .cancelled
        case .failed(let failure): self = TaskFailure(failure)
        }
    }
}

extension TaskFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed out"
        case .directionClosed: "this direction of the connection was closed"
        case .usage(let text), .connectionLost(let text), .cannotConnect(let text): text
        case .ended: "the task is over"
        case .secureConnectionFailed(let text): "TLS failed: \(text)"
        case .handshakeRefused(let status): "the server answered the opening handshake with status \(status)"
        case .protocolViolation(let code, let text): "the peer broke the protocol (close code \(code)): \(text)"
        case .messageTooLong(let limit): "a message is longer than the limit of \(limit) bytes"
        case .peerUnresponsive: "the peer stopped answering"
        case .closed: "the peer closed the connection"
        }
    }
}
