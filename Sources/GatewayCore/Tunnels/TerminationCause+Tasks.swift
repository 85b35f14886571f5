import SessionTasks
import StreamTransport
import WebSocketProtocol

extension TerminationCause {
    /// What the failure of a task means for its connection. A lost connection has the same cause whatever is spoken on
    /// it, in a tunnel or not.
    init(_ failure: TaskFailure) {
        if let fault = ConnectionFault(failure) {
            self = fault.cause
            return
        }
        switch failure {
        case .protocolViolation(let code, _): self = .violation(closeCode: code)
        case .messageTooLong: self = .violation(closeCode: 1009)
        case .timedOut: self = .timeout(.closing)
        case .cancelled: self = .stopped
        case .handshakeRefused(let status): self = .upstreamStatus(UInt16(clamping: status))
        case .cannotConnect(let fault): self = fault.isOwnLack ? .system : .unreachable
        case .directionClosed, .usage, .ended, .closed, .connectionLost, .peerUnresponsive, .secureConnectionFailed:
            self = .system
        }
    }

    /// What a failed transport means while the client's way to its endpoint is not complete.
    init(arriving failure: TransportFailure) {
        switch failure {
        case .deadlinePassed: self = .timeout(.handshake)
        case .reset, .truncated, .peerUnresponsive, .tls, .nameResolution, .refused, .noSuchFile, .unreachable,
            .notPermitted, .unusableEndpoint, .ownResources, .system:
            self = ConnectionFault(failure).cause
        }
    }
}

extension ConnectionFault {
    /// How an open connection was lost.
    init(_ failure: TransportFailure) {
        switch failure {
        case .reset: self = .reset
        case .truncated: self = .truncated
        case .peerUnresponsive: self = .unresponsive
        case .tls: self = .tls
        case .deadlinePassed, .nameResolution, .refused, .noSuchFile, .unreachable, .notPermitted, .unusableEndpoint,
            .ownResources, .system:
            self = .system
        }
    }

    /// `nil` for a task whose connection was not lost: it never came about, or its end has another cause.
    init?(_ failure: TaskFailure) {
        switch failure {
        // Without a failure of the transport it is the task's own protocol that misses its end.
        case .connectionLost(let fault): self = fault.transportFailure.map { ConnectionFault($0) } ?? .truncated
        case .peerUnresponsive: self = .unresponsive
        case .secureConnectionFailed: self = .tls
        case .cancelled, .timedOut, .directionClosed, .usage, .ended, .cannotConnect, .handshakeRefused,
            .protocolViolation, .messageTooLong, .closed:
            return nil
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
