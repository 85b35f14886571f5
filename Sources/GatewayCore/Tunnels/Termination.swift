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
    /// The opening handshake was answered with this status instead of 101, for an error of the request: 400, 403, 404,
    /// 405, 426, 431.
    case refusedRequest(status: UInt16)
    case refusedAdmission(AdmissionRefusal)
    case tls
    /// The client's token expired.
    case tokenExpired
    /// The upstream could not be reached: its name, its address, or its refusal.
    case unreachable
    /// The proxy towards the upstream could not be reached, or did not connect to it.
    case proxy
    /// The upstream answered the opening handshake with this status.
    case upstreamStatus(UInt16)
    /// The upstream's answer to the opening handshake was not valid.
    case upstreamHandshake
    /// Shutdown or reload.
    case drained
    /// Ended on request.
    case stopped
    /// An error of the system, or a lack of the gateway's own resources.
    case system

    /// Stable and of few values: suitable as a metric's label.
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
        case .tokenExpired: "token-expired"
        case .unreachable: "unreachable"
        case .proxy: "proxy"
        case .upstreamStatus: "upstream-status"
        case .upstreamHandshake: "upstream-handshake"
        case .drained: "drained"
        case .stopped: "stopped"
        case .system: "system"
        }
    }

    /// The close code or status of the cause; `nil` if it has none.
    package var code: UInt16? {
        switch self {
        case .clean(let code): code
        case .abnormalClose(let code), .violation(let code), .refusedRequest(let code), .upstreamStatus(let code): code
        case .reset, .truncated, .unresponsive, .timeout, .proxyHeader, .refusedAdmission, .tls, .tokenExpired,
            .unreachable,
            .proxy, .upstreamHandshake, .drained, .stopped, .system:
            nil
        }
    }
}

/// The party that ended a connection.
package enum TerminationParty: String, CaseIterable, Sendable {
    case downstream
    case upstream
    /// A limit or deadline of ours, or an internal error.
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
