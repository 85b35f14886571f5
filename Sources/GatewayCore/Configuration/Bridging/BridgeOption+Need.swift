extension BridgeOption {
    /// What LISTEN or TARGET must be for an option to mean anything.
    enum Need {
        case nothing
        case secureListener, secureTarget
        case webSocketListener, webSocketTarget
        /// Either of them.
        case anyWebSocket
    }

    var need: Need {
        switch self {
        case .certificate, .key, .clientCA, .clientCRL: .secureListener
        case .ca, .crl, .clientCertificate, .clientKey, .serverName, .insecure: .secureTarget
        case .origin: .webSocketListener
        case .header: .webSocketTarget
        case .subprotocol: .anyWebSocket
        case .framing, .halfClose, .compress, .pingInterval, .pongTimeout, .maxMessageSize, .maxConnections,
            .idleTimeout,
            .handshakeTimeout, .connectTimeout, .drainTimeout, .proxyProtocol, .logFormat, .logLevel, .quiet:
            .nothing
        }
    }

    var typed: String { "--\(self.rawValue)" }
}
