import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Why a connection ended: party, phase and cause. Each connection has exactly one; the first cause wins.
package struct TerminationReason: Hashable, Sendable {
    package var party: TerminationParty
    package var phase: TerminationPhase
    package var cause: TerminationCause

    package init(_ party: TerminationParty, _ phase: TerminationPhase, _ cause: TerminationCause) {
        self.party = party
        self.phase = phase
        self.cause = cause
    }

    /// `downstream/relaying/clean`: stable, for metrics. Codes are left out.
    package var name: String {
        "\(self.party.rawValue)/\(self.phase.rawValue)/\(self.cause.name)"
    }
}

extension TerminationReason: CustomStringConvertible {
    /// The name, with the code where there is one: `upstream/relaying/abnormal-close(1011)`.
    package var description: String {
        self.cause.code.map { "\(self.name)(\($0))" } ?? self.name
    }
}

/// Cause of a connection's end.
package enum TerminationCause: Hashable, Sendable {
    /// Both directions finished, or a regular Close with this code (`nil` for none).
    case clean(closeCode: UInt16?)
    /// A Close whose code reports an error.
    case abnormalClose(closeCode: UInt16)
    case reset
    case truncated
    case unresponsive
    case timeout(TerminationTimeout)
    /// A rule of WebSocket or of the framing was broken, or a message limit exceeded; the code says which (RFC 6455
    /// §7.4.1).
    case violation(closeCode: UInt16)
    /// A malformed PROXY protocol header, or one from a peer that is not trusted.
    case proxyHeader
    /// The opening handshake was answered with this status instead of 101, for a fault of the request: 400, 403, 404,
    /// 405, 426, 431.
    case refusedRequest(status: UInt16)
    case refusedAdmission(AdmissionRefusal)
    case tls
    /// The upstream could not be reached: its name, its address, or its refusal.
    case unreachable
    /// The upstream answered the opening handshake with this status.
    case upstreamStatus(UInt16)
    /// The upstream's answer to the opening handshake was no valid one.
    case upstreamHandshake
    /// Shutdown or reload.
    case drained
    /// Ended on request.
    case stopped
    /// The gateway's own resources failed it.
    case system

    /// Stable and of few values: fit for a metric's label.
    package var name: String {
        switch self {
        case .clean: "clean"
        case .abnormalClose: "abnormal-close"
        case .reset: "reset"
        case .truncated: "truncated"
        case .unresponsive: "unresponsive"
        case .timeout(let timeout): "\(timeout.rawValue)-timeout"
        case .violation: "violation"
        case .proxyHeader: "proxy-header"
        case .refusedRequest: "refused-request"
        case .refusedAdmission(let refusal): refusal.rawValue
        case .tls: "tls"
        case .unreachable: "unreachable"
        case .upstreamStatus: "upstream-status"
        case .upstreamHandshake: "upstream-handshake"
        case .drained: "drained"
        case .stopped: "stopped"
        case .system: "system"
        }
    }

    /// The close code or status that goes with it.
    package var code: UInt16? {
        switch self {
        case .clean(let code): code
        case .abnormalClose(let code), .violation(let code), .refusedRequest(let code), .upstreamStatus(let code): code
        case .reset, .truncated, .unresponsive, .timeout, .proxyHeader, .refusedAdmission, .tls, .unreachable,
            .upstreamHandshake, .drained, .stopped, .system:
            nil
        }
    }
}

extension TerminationCause {
    /// Maps a task's failure. A lost connection has the same cause whatever protocol it carries, in a tunnel or not.
    init(_ failure: TaskFailure) {
        if let fault = ConnectionFailure(failure) {
            self = fault.cause
            return
        }
        switch failure {
        case .protocolViolation(let code, _): self = .violation(closeCode: code)
        case .messageTooLong: self = .violation(closeCode: 1009)
        case .timedOut: self = .timeout(.closing)
        case .cancelled: self = .stopped
        case .handshakeRefused(let status): self = .upstreamStatus(UInt16(clamping: status))
        case .cannotConnect(let fault): self = fault.isLocalResourceFailure ? .system : .unreachable
        case .directionClosed, .usageError, .ended, .closed, .connectionLost, .peerUnresponsive,
            .secureConnectionFailed:
            self = .system
        }
    }

    /// Maps a transport's failure before the connection reached its endpoint.
    init(arriving failure: TransportFailure) {
        switch failure {
        case .deadlinePassed: self = .timeout(.handshake)
        case .reset, .truncated, .peerUnresponsive, .tls, .nameResolution, .refused, .noSuchFile, .unreachable,
            .notPermitted, .unusableEndpoint, .ownResources, .system:
            self = ConnectionFailure(failure).cause
        }
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
        case .deadlinePassed, .nameResolution, .refused, .noSuchFile, .unreachable, .notPermitted, .unusableEndpoint,
            .ownResources, .system:
            self = .system
        }
    }

    /// `nil` for a task whose connection was not lost: it never came about, or its end has another cause.
    init?(_ failure: TaskFailure) {
        switch failure {
        // Without a transport failure, the task's own protocol ended early.
        case .connectionLost(let fault): self = fault.transportFailure.map { ConnectionFailure($0) } ?? .truncated
        case .peerUnresponsive: self = .unresponsive
        case .secureConnectionFailed: self = .tls
        case .cancelled, .timedOut, .directionClosed, .usageError, .ended, .cannotConnect, .handshakeRefused,
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

/// The party that ended a connection.
package enum TerminationParty: String, CaseIterable, Sendable {
    case downstream
    case upstream
    /// A limit or deadline of ours, or our own fault.
    case gateway
    /// A person or program operating the gateway: drain, reload, REST.
    case `operator`

    package init(_ side: TunnelSide) {
        switch side {
        case .downstream: self = .downstream
        case .upstream: self = .upstream
        }
    }
}

/// Phase in which a connection ended. The raw value appears in logs and metrics.
package enum TerminationPhase: String, CaseIterable, Sendable {
    case accepting
    case proxyProtocol = "proxy-protocol"
    /// TLS with the client.
    case tls
    /// The client's opening handshake.
    case openingHandshake = "opening-handshake"
    /// Reaching the upstream: resolution, TCP, TLS and its opening handshake.
    case connecting
    case relaying
    /// After the first Close frame or the first request to end.
    case closing
}

/// The deadline that passed.
package enum TerminationTimeout: String, CaseIterable, Sendable {
    /// The client's whole way to a tunnel: PROXY header, TLS, opening handshake.
    case handshake
    case connect
    /// The upstream's TLS and opening handshake.
    case upstreamHandshake = "upstream-handshake"
    case idle
    case maximumAge = "maximum-age"
    /// The closing handshake, or sending the last bytes.
    case closing
}
