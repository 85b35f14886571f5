import Foundation
import SessionTasks
import TLSEngine

/// What the tasks of connections tell, in the codes of the URL loading system.
extension LoadFailure {
    static func error(of failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .cancelled: self.error(.cancelled, url: url)
        case .timedOut: self.error(.timedOut, url: url, cause: POSIXError(.ETIMEDOUT), text: "The request timed out.")
        case .peerUnresponsive:
            self.error(.timedOut, url: url, cause: POSIXError(.ETIMEDOUT), text: "The server stopped answering.")
        case .directionClosed:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.ESHUTDOWN),
                text: "This direction of the connection was closed.")
        case .usage(let text): self.error(.unknown, url: url, cause: POSIXError(.EINVAL), text: text)
        case .ended, .closed:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.ENOTCONN), text: "The connection is closed.")
        case .connectionLost(let fault):
            self.error(
                .networkConnectionLost, url: url,
                cause: fault.transportFailure.map(self.cause) ?? POSIXError(.ECONNRESET), text: fault.description)
        case .cannotConnect(let fault):
            fault.transportFailure.map { self.error($0, url: url) }
                ?? self.error(.cannotConnectToHost, url: url, cause: failure, text: fault.description)
        case .secureConnectionFailed(let failure):
            self.error(self.code(failure), url: url, cause: failure, text: failure.description)
        case .handshakeRefused, .protocolViolation, .messageTooLong: self.webSocketError(failure, url: url)
        }
    }

    private static func webSocketError(_ failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .handshakeRefused(let status):
            self.error(
                .badServerResponse, url: url, cause: failure,
                text: "The server answered the opening handshake with status \(status).",
                more: [URLErrorHandshakeStatusCodeKey: status])
        case .messageTooLong(let limit):
            self.error(
                .dataLengthExceedsMaximum, url: url, cause: POSIXError(.EMSGSIZE),
                text: "A message is longer than maximumMessageSize, which is \(limit) bytes.")
        default:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.EPROTO),
                text: "The server broke the WebSocket protocol: \(failure).")
        }
    }

    /// The opening handshake came to no end that opens a WebSocket.
    static func handshakeError(_ failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .connectionLost(let fault):
            self.error(.badServerResponse, url: url, cause: failure, text: fault.description)
        case .protocolViolation(_, let text):
            self.error(.badServerResponse, url: url, cause: failure, text: text)
        default: self.error(of: failure, url: url)
        }
    }
}

extension URLError {
    /// The status with which a server refused the opening handshake of a WebSocket. Ours: `URLErrorHandshakeStatusCodeKey`
    /// in the `userInfo`.
    public var handshakeStatusCode: Int? { self.userInfo[URLErrorHandshakeStatusCodeKey] as? Int }
}

/// In the `userInfo` of an error: the status with which a server refused the opening handshake of a WebSocket, an `Int`.
public let URLErrorHandshakeStatusCodeKey = "URLErrorHandshakeStatusCode"
