import SessionTasks
import WebSocketProtocol

/// Why a connection that was asked for did not come about.
package struct ClientFailure: Error, Sendable {
    /// The name it had; its closing record is kept under it.
    package let key: ConnectionKey?
    package let failure: TaskFailure
    /// The server's answer to the opening handshake, if it was not 101.
    package let response: ResponseHead?

    init(_ key: ConnectionKey?, failure: TaskFailure, response: ResponseHead?) {
        self.key = key
        self.failure = failure
        self.response = response
    }
}
