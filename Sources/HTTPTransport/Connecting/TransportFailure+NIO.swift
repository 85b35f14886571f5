import NIOCore
import NIOPosix
import StreamTransport

extension TransportFailure {
    /// What an error of an open channel means.
    init(_ error: any Error) {
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as IOError:
            let system = SystemError(error.errnoCode)
            switch system {
            case .reset, .brokenPipe: self = .reset
            case .timedOut: self = .peerUnresponsive
            default: self = .system(system)
            }
        default: self = .system(.notConnected)
        }
    }

    /// What ended an attempt to connect. Of several addresses that all failed, the last is told.
    init(connecting error: any Error, isSocketFile: Bool) {
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as IOError: self.init(connecting: SystemError(error.errnoCode), isSocketFile: isSocketFile)
        case let error as NIOConnectionError:
            if let last = error.connectionErrors.last {
                self.init(connecting: last.error, isSocketFile: false)
            } else if let failure = (error.dnsAError ?? error.dnsAAAAError) as? ResolutionFailure {
                self = .nameResolution(failure)
            } else {
                self = .nameResolution(.nameNotFound)
            }
        case ChannelError.connectTimeout: self = .deadlinePassed(.connecting)
        default: self = .system(.notConnected)
        }
    }
}
