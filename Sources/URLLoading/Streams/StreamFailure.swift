import Foundation
import StreamTransport

/// What a stream says went wrong with its connection, in the terms of the system, as streams of sockets do.
enum StreamFailure {
    static func error(_ failure: TransportFailure) -> NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(self.number(failure)),
            userInfo: [NSLocalizedDescriptionKey: failure.description])
    }

    private static func number(_ failure: TransportFailure) -> Int32 {
        switch failure {
        case .truncated: ECONNRESET
        case .deadlinePassed: ETIMEDOUT
        case .notPermitted: EACCES
        case .nameResolution: EHOSTUNREACH
        case .tls: EPROTO
        case .reset, .peerUnresponsive, .refused, .noSuchFile, .unreachable, .unusableEndpoint, .ownResources, .system:
            failure.systemError?.number ?? EIO
        }
    }
}
