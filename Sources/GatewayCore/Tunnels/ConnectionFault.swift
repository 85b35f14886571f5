/// How a connection of a tunnel was lost: never a clean end.
package enum ConnectionFault: CaseIterable, Sendable {
    /// The peer reset it, or refused what we wrote.
    case reset
    /// TLS without close_notify, or a WebSocket without its Close frame: bytes may be missing.
    case truncated
    /// No pong, keep-alive answer or acknowledgement within its time.
    case unresponsive
    /// TLS failed in mid-stream.
    case tls
    /// Anything else the system says.
    case system

    package var cause: TerminationCause {
        switch self {
        case .reset: .reset
        case .truncated: .truncated
        case .unresponsive: .unresponsive
        case .tls: .tls
        case .system: .system
        }
    }
}
