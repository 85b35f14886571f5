import StreamTransport
import TLSEngine

/// Why a task, or one of its operations, failed. The case says whether the caller, the peer or the network caused it.
public enum TaskFailure: Error, Hashable, Sendable {
    /// The task was cancelled.
    case cancelled
    /// The operation's deadline passed.
    case timedOut
    /// A read after `closeRead`, or a write after `closeWrite`.
    case directionClosed
    /// The arguments are invalid; the text says why.
    case usageError(String)
    /// The task is over, or its transport was captured: nothing can be done with it any more.
    case ended
    /// The peer ended the connection without the closing handshake, or reset it.
    indirect case connectionLost(TransportError)
    /// No connection was established: name resolution, refusal, unreachable network, our own lack of resources.
    indirect case cannotConnect(TransportError)
    /// TLS failed: no handshake, a certificate that fails verification, or an invalid record.
    indirect case secureConnectionFailed(TLSFailure)
    /// The peer's answer to the opening handshake was not an acceptance.
    case handshakeRefused(status: Int)
    /// The peer broke a rule of the protocol; the connection was failed with this close code.
    case protocolViolation(closeCode: UInt16, String)
    /// A message would be longer than the task's `maximumMessageSize`; the connection was failed with 1009.
    case messageTooLong(limit: Int)
    /// The peer did not answer a keep-alive ping in time.
    case peerUnresponsive
    /// The peer closed the WebSocket; code and reason are the task's `closeCode` and `closeReason`.
    case closed
}

extension TaskFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed out"
        case .directionClosed: "this direction of the connection was closed"
        case .usageError(let text): text
        case .connectionLost(let error), .cannotConnect(let error): error.description
        case .ended: "the task is over"
        case .secureConnectionFailed(let failure): "TLS failed: \(failure)"
        case .handshakeRefused(let status): "the server answered the opening handshake with status \(status)"
        case .protocolViolation(let code, let text): "the peer broke the protocol (close code \(code)): \(text)"
        case .messageTooLong(let limit): "a message is longer than the limit of \(limit) bytes"
        case .peerUnresponsive: "the peer stopped answering"
        case .closed: "the peer closed the connection"
        }
    }
}

extension TaskFailure {
    /// The task's view of a failed transport.
    package init(_ failure: TransportFailure) {
        switch failure {
        case .reset, .truncated, .system: self = .connectionLost(TransportError(failure))
        case .peerUnresponsive: self = .peerUnresponsive
        case .deadlinePassed: self = .timedOut
        case .nameResolution, .refused, .noSuchFile, .unreachable, .offline, .notPermitted, .unusableEndpoint,
            .ownResources, .proxy:
            self = .cannotConnect(TransportError(failure))
        case .tls(let layer):
            self =
                (layer.cause as? TLSFailure).map { .secureConnectionFailed($0) }
                ?? .connectionLost(TransportError(failure))
        }
    }

    init(_ end: TransportEnd) {
        switch end {
        case .closed: self = .ended
        case .abandoned: self = .cancelled
        case .failed(let failure): self = TaskFailure(failure)
        }
    }
}

/// Why a task's connection failed or was not established. `description` is for people; decide by `kind`.
public struct TransportError: Hashable, Sendable, CustomStringConvertible {
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
        /// There is no route to the address, or it did not answer.
        case unreachable
        /// The endpoint accepts no connection: its queue is full, its file forbids it, its socket is of another
        /// kind.
        case unusableEndpoint
        /// This process or this machine lacks what a connection needs: descriptors, memory, local ports.
        case ownResources
        /// The proxy did not establish the connection.
        case proxy
        /// Anything else that the system says.
        case system
    }

    /// The end that the task's own protocol requires and did not get.
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

    /// A failure reported as text by another program that holds the task's connection.
    package init(reported text: String) {
        self.cause = .reported(text)
    }

    /// In the transport's own terms; `nil` where no transport failed.
    package var transportFailure: TransportFailure? {
        if case .transport(let failure) = self.cause { failure } else { nil }
    }

    /// Whether this process or this machine, and not the endpoint, caused the failure to connect.
    package var isLocalResourceFailure: Bool { self.transportFailure?.isLocalResourceFailure ?? false }

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
        case .unreachable, .offline, .peerUnresponsive, .deadlinePassed: .unreachable
        case .unusableEndpoint: .unusableEndpoint
        case .proxy: .proxy
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
