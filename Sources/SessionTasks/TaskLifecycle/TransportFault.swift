import StreamTransport

/// What was wrong with a task's connection, or kept it from coming about. `description` says it in words; decide by
/// `kind`.
public struct TransportFault: Hashable, Sendable, CustomStringConvertible {
    public enum Kind: Hashable, Sendable {
        /// The peer reset the connection.
        case reset
        /// The peer cut the connection before its end was agreed: no close_notify (RFC 8446 §6.1), no Close frame
        /// (RFC 6455 §7.1.5), or no answer to the opening handshake.
        case truncated
        /// The name has no address, or could not be looked up.
        case nameResolution
        /// No process listens at the address.
        case refused
        /// No Unix socket has this path.
        case noSuchFile
        /// The address is none that may be connected to; nothing was sent.
        case notPermitted
        /// No way leads to the address, or no answer came from it.
        case unreachable
        /// The endpoint takes no connection as it is: its queue is full, its file forbids it, its socket is of another
        /// kind.
        case unusableEndpoint
        /// This process or this machine lacks what a connection needs: descriptors, memory, local ports.
        case ownResources
        /// Anything else that the system says.
        case system
    }

    /// What the task's own protocol missed when the connection ended; a transport knows nothing of it.
    package enum MissingEnd: Hashable, Sendable {
        case closeFrame
        case openingAnswer
    }

    private enum Cause: Hashable, Sendable {
        case transport(TransportFailure)
        case missing(MissingEnd)
        case reported(String)
    }

    private let cause: Cause

    package init(_ failure: TransportFailure) {
        self.cause = .transport(failure)
    }

    package init(missing end: MissingEnd) {
        self.cause = .missing(end)
    }

    /// A connection that another program holds for the task, and whose failure it tells in words alone.
    package init(reported text: String) {
        self.cause = .reported(text)
    }

    /// In the transport's own terms; `nil` where no transport failed.
    package var transportFailure: TransportFailure? {
        if case .transport(let failure) = self.cause { failure } else { nil }
    }

    /// Whether this process or this machine, and not the endpoint, is why no connection came about.
    package var isOwnLack: Bool { self.transportFailure?.isOwnLack ?? false }

    /// Whether the peer ended the connection in the midst of the opening handshake.
    package var endedDuringOpening: Bool { self.cause == .missing(.openingAnswer) }

    /// The system's error number; `nil` where none is known.
    public var errorNumber: Int32? { self.transportFailure?.systemError?.number }

    public var kind: Kind {
        switch self.cause {
        case .missing: .truncated
        case .reported: .system
        case .transport(let failure): Self.kind(failure)
        }
    }

    private static func kind(_ failure: TransportFailure) -> Kind {
        switch failure {
        case .reset: .reset
        case .truncated: .truncated
        case .nameResolution(.tooManyLookups), .ownResources: .ownResources
        case .nameResolution: .nameResolution
        case .refused: .refused
        case .noSuchFile: .noSuchFile
        case .notPermitted: .notPermitted
        case .unreachable, .peerUnresponsive, .deadlinePassed: .unreachable
        case .unusableEndpoint: .unusableEndpoint
        case .tls, .system: .system
        }
    }

    public var description: String {
        switch self.cause {
        case .transport(let failure): failure.description
        case .missing(.closeFrame): "the peer ended the connection without a Close frame"
        case .missing(.openingAnswer): "the server ended the connection during the opening handshake"
        case .reported(let text): text
        }
    }
}
