extension TransportFailure {
    /// What an error number means while a connection is being opened.
    /// - Parameter isSocketFile: whether the address is that of a Unix socket.
    package init(connecting error: SystemError, isSocketFile: Bool) {
        switch error {
        case .refused: self = .refused
        case .noSuchFile: self = .noSuchFile
        case .timedOut, .hostUnreachable, .networkUnreachable, .networkDown: self = .unreachable(error)
        case .reset: self = .reset
        // A Unix socket says so when its queue is full; of TCP it is our system that lacks routing entries (connect(2)).
        case .wouldBlock: self = isSocketFile ? .unusableEndpoint(error) : .ownResources(error)
        case .addressNotAvailable: self = .ownResources(error)
        case _ where error.isExhaustion: self = .ownResources(error)
        default: self = .unusableEndpoint(error)
        }
    }

    /// Whether this process or this machine, and not the endpoint, is why no connection came about.
    package var isOwnLack: Bool {
        switch self {
        case .ownResources, .nameResolution(.tooManyLookups): true
        case .reset, .peerUnresponsive, .truncated, .deadlinePassed, .nameResolution, .refused, .noSuchFile,
            .notPermitted, .unreachable, .unusableEndpoint, .tls, .system:
            false
        }
    }

    /// The error number of the system; `nil` where none was given.
    package var systemError: SystemError? {
        switch self {
        case .reset: .reset
        case .refused: .refused
        case .noSuchFile: .noSuchFile
        case .peerUnresponsive: .timedOut
        case .unreachable(let error), .unusableEndpoint(let error), .ownResources(let error), .system(let error): error
        case .truncated, .deadlinePassed, .nameResolution, .notPermitted, .tls: nil
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
        case .noSuchFile: "no such file"
        case .notPermitted(let address): "\(address) is none of the permitted targets"
        case .unreachable(let error): "unreachable: \(error)"
        case .unusableEndpoint(let error): Self.text(ofEndpoint: error)
        case .ownResources(.addressNotAvailable): "no local port is free"
        case .ownResources(let error): "this machine lacks resources for a connection: \(error)"
        case .tls(let failure): "TLS failed: \(failure)"
        case .system(let error): error.description
        }
    }

    private static func text(ofEndpoint error: SystemError) -> String {
        switch error {
        case .wouldBlock: "the socket's queue of connections is full"
        case .accessDenied: "permission denied: connecting needs write permission on the socket's file"
        case .wrongSocketType: "the socket is not a stream socket"
        case .notSocket: "the file is not a socket"
        default: error.description
        }
    }
}
