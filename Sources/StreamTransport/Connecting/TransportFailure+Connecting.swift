extension TransportFailure {
    /// What an error number means while a connection is being opened.
    package init(connecting error: SystemError) {
        switch error {
        // A missing Unix socket is nobody listening, as a closed port is.
        case .refused, .noSuchFile: self = .refused
        case .timedOut, .hostUnreachable, .networkUnreachable: self = .unreachable(error)
        case .reset: self = .reset
        default: self = .system(error)
        }
    }
}

extension TransportFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .reset: "connection reset by the peer"
        case .peerUnresponsive: "the peer stopped answering"
        case .truncated: "the connection was cut without close_notify"
        case .deadlinePassed(let phase): "timed out while \(phase.rawValue)"
        case .nameResolution(.nameNotFound): "the name has no address"
        case .nameResolution(.temporarilyUnavailable): "the name service does not answer"
        case .nameResolution(.tooManyLookups): "too many names are being looked up"
        case .nameResolution(.failed(let text)): "the name could not be looked up: \(text)"
        case .refused: "connection refused"
        case .notPermitted(let address): "\(address) is none of the permitted targets"
        case .unreachable(let error): "unreachable: \(error)"
        case .tls(let text): "TLS failed: \(text)"
        case .system(let error): error.description
        }
    }
}
