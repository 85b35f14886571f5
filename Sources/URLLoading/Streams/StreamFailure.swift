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
        case .reset, .truncated: ECONNRESET
        case .peerUnresponsive, .deadlinePassed: ETIMEDOUT
        case .refused: ECONNREFUSED
        case .notPermitted: EACCES
        case .nameResolution: EHOSTUNREACH
        case .tls: EPROTO
        case .unreachable(let error), .system(let error): error.number
        }
    }
}
