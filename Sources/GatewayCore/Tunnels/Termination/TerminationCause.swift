/// What ended a connection.
package enum TerminationCause: Hashable, Sendable {
    /// Both directions finished, or a regular Close with this code (`nil` for none).
    case clean(closeCode: UInt16?)
    /// A Close whose code names a fault.
    case abnormalClose(closeCode: UInt16)
    case reset
    case truncated
    case unresponsive
    case timeout(TerminationTimeout)
    /// A rule of WebSocket, of the framing or a message limit was broken; the code tells which (RFC 6455 §7.4.1).
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
    /// Ended by command.
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
