import SessionTasks
import StreamTransport
import TLSEngine

// Every failure that becomes a termination reason is mapped here, by its type and never by its text.

extension TerminationCause {
    /// Maps a task's failure. A lost connection has the same cause whatever protocol it carries, in a tunnel or not.
    package init(_ failure: TaskFailure) {
        if let lost = ConnectionFailure(failure) {
            self.init(lost)
            return
        }
        switch failure {
        case .protocolViolation(let code, _): self = .violation(closeCode: code)
        case .messageTooLong: self = .violation(closeCode: 1009)
        case .timedOut: self = .timeout(.closing)
        case .cancelled: self = .stopped
        case .handshakeRefused(let status): self = .upstreamStatus(UInt16(clamping: status))
        case .cannotConnect(let error) where error.kind == .proxy: self = .proxy
        case .cannotConnect(let error): self = error.isLocalResourceFailure ? .system : .unreachable
        case .directionClosed, .usageError, .ended, .closed, .connectionLost, .peerUnresponsive,
            .secureConnectionFailed:
            self = .system
        }
    }

    /// Maps a transport's failure before the connection reached its endpoint.
    package init(arriving failure: TransportFailure) {
        switch failure {
        case .deadlinePassed: self = .timeout(.handshake)
        case .reset, .truncated, .peerUnresponsive, .tls, .nameResolution, .refused, .noSuchFile, .unreachable,
            .offline,
            .notPermitted, .unusableEndpoint, .ownResources, .proxy, .system:
            self.init(ConnectionFailure(failure))
        }
    }

    init(_ failure: ConnectionFailure) {
        switch failure {
        case .reset: self = .reset
        case .truncated: self = .truncated
        case .unresponsive: self = .unresponsive
        case .tls: self = .tls
        case .system: self = .system
        }
    }

    package init(_ signal: CloseSignal) {
        if let code = signal.code, !signal.isRegular {
            self = .abnormalClose(closeCode: code)
        } else {
            self = .clean(closeCode: signal.code)
        }
    }

    init(_ failure: UpstreamFailure) {
        switch failure {
        case .unreachable: self = .unreachable
        case .proxy: self = .proxy
        case .tls, .certificate: self = .tls
        case .connectTimeout: self = .timeout(.connect)
        case .handshakeTimeout: self = .timeout(.upstreamHandshake)
        case .status(let status): self = .upstreamStatus(status)
        case .invalidHandshake: self = .upstreamHandshake
        case .ownResources: self = .system
        }
    }
}

extension TerminationReason {
    /// How a task ended by itself.
    /// - Parameter party: the task's peer. The gateway is named instead if it lacked a resource.
    init(_ end: TaskEnd, of party: TerminationParty, _ phase: TerminationPhase) {
        var party = party
        if case .cannotConnect(let error)? = end.failure, error.isLocalResourceFailure { party = .gateway }
        let cause = end.failure.map { TerminationCause($0) } ?? TerminationCause(CloseSignal(code: end.closeCode))
        self.init(party, phase, cause)
    }

    /// No upstream could serve the client.
    package init(_ failure: UpstreamFailure) {
        let party: TerminationParty = failure == .ownResources ? .gateway : .upstream
        self.init(party, .connecting, TerminationCause(failure))
    }
}

extension ConnectionFailure {
    /// How an open connection was lost.
    init(_ failure: TransportFailure) {
        switch failure {
        case .reset: self = .reset
        case .truncated: self = .truncated
        case .peerUnresponsive: self = .unresponsive
        case .tls: self = .tls
        case .deadlinePassed, .nameResolution, .refused, .noSuchFile, .unreachable, .offline, .notPermitted,
            .unusableEndpoint, .ownResources, .proxy, .system:
            self = .system
        }
    }

    /// `nil` if the connection was not lost: it was never established, or its end has another cause.
    init?(_ failure: TaskFailure) {
        switch failure {
        // Without a transport failure, the task's own protocol ended early.
        case .connectionLost(let error): self = error.transportFailure.map { ConnectionFailure($0) } ?? .truncated
        case .peerUnresponsive: self = .unresponsive
        case .secureConnectionFailed: self = .tls
        case .cancelled, .timedOut, .directionClosed, .usageError, .ended, .cannotConnect, .handshakeRefused,
            .protocolViolation, .messageTooLong, .closed:
            return nil
        }
    }
}

extension UpstreamFailure {
    /// Maps the failure of a task that never opened.
    init(_ failure: TaskFailure?, of endpoint: RelayEndpoint) {
        switch failure {
        case .handshakeRefused(let status): self = .status(UInt16(clamping: status))
        // Once connected, a timeout was the handshake's.
        case .timedOut: self = endpoint.task.record.isConnected ? .handshakeTimeout : .connectTimeout
        case .secureConnectionFailed(let failure): self = failure.concernsCertificates ? .certificate : .tls
        case .protocolViolation: self = .invalidHandshake
        case .peerUnresponsive: self = .handshakeTimeout
        case .cannotConnect(let error) where error.isLocalResourceFailure: self = .ownResources
        case .cannotConnect(let error) where error.kind == .proxy: self = .proxy
        case .cancelled, .directionClosed, .usageError, .ended, .connectionLost, .cannotConnect, .messageTooLong,
            .closed, nil:
            self = endpoint.response == nil ? .unreachable : .invalidHandshake
        }
    }
}
