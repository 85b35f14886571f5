import StreamTransport
import TLSEngine

extension TaskFailure {
    /// The task's view of a failed transport.
    package init(_ failure: TransportFailure) {
        switch failure {
        case .reset, .truncated, .system: self = .connectionLost(TransportFault(failure))
        case .peerUnresponsive: self = .peerUnresponsive
        case .deadlinePassed: self = .timedOut
        case .nameResolution, .refused, .noSuchFile, .unreachable, .notPermitted, .unusableEndpoint, .ownResources:
            self = .cannotConnect(TransportFault(failure))
        case .tls(let layer):
            self =
                (layer.cause as? TLSFailure).map { .secureConnectionFailed($0) }
                ?? .connectionLost(TransportFault(failure))
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
