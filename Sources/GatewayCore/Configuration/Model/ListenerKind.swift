/// What connections of a listener speak.
package enum ListenerKind: String, Sendable, Equatable, CaseIterable {
    /// A plain byte stream over TCP (or an adopted socket).
    case tcp
    /// A byte stream inside TLS.
    case tls
    /// WebSocket requests in the clear.
    case ws
    /// WebSocket requests inside TLS.
    case wss
    /// A plain byte stream over a Unix socket.
    case unix

    package var speaksWebSocket: Bool {
        switch self {
        case .ws, .wss: true
        case .tcp, .tls, .unix: false
        }
    }

    package var speaksTLS: Bool {
        switch self {
        case .tls, .wss: true
        case .tcp, .ws, .unix: false
        }
    }
}
