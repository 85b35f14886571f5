import SessionTasks
import StreamTransport
import WebSocketProtocol

extension TerminationCause {
    /// What the failure of a task means for its connection.
    init(_ failure: TaskFailure) {
        switch failure {
        case .connectionLost(let text): self = text == TransportFailure.reset.description ? .reset : .truncated
        case .peerUnresponsive: self = .unresponsive
        case .protocolViolation(let code, _): self = .violation(closeCode: code)
        case .messageTooLong: self = .violation(closeCode: 1009)
        case .secureConnectionFailed: self = .tls
        case .timedOut: self = .timeout(.closing)
        case .cancelled: self = .stopped
        case .handshakeRefused(let status): self = .upstreamStatus(UInt16(clamping: status))
        case .cannotConnect: self = .unreachable
        case .directionClosed, .usage, .ended, .closed: self = .system
        }
    }
}

extension TerminationReason {
    /// How a WebSocket at an endpoint of the gateway's own ended, when the client began the end.
    init(endpoint end: WebSocketEnd) {
        if let failure = end.failure {
            self.init(.downstream, .relaying, TerminationCause(failure))
        } else {
            self.init(.downstream, .relaying, CloseSignal(code: end.code?.rawValue).cause)
        }
    }
}
