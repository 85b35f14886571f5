import SessionTasks
import WebSocketProtocol

extension ControlProblem {
    /// What the failure of a task's verb means for who asked for it.
    init(_ failure: TaskFailure) {
        switch failure {
        case .cancelled: self.init(409, "cancelled", "The connection was ended meanwhile.")
        case .timedOut: self = Self(504, "timed-out", "It took too long; try again with a longer timeout.").retryable()
        case .directionClosed:
            self.init(409, "direction-closed", "This direction of the connection is closed already.")
        case .usage(let text): self.init(409, "state-conflict", text)
        case .ended, .closed: self.init(410, "closed", "The connection is over.")
        case .connectionLost(let fault): self.init(410, "connection-lost", fault.description)
        case .cannotConnect(let fault):
            self = Self(fault.isOwnLack ? 503 : 502, "cannot-connect", fault.description).retryable()
        case .secureConnectionFailed(let failure): self.init(502, "tls-failed", "TLS failed: \(failure)")
        case .handshakeRefused(let status):
            self.init(502, "handshake-refused", "The server answered the opening handshake with status \(status).")
        case .protocolViolation(_, let text):
            self.init(502, "protocol-violation", "The peer broke the protocol: \(text)")
        case .messageTooLong(let limit):
            self.init(502, "message-too-long", "A message is longer than the limit of \(limit) bytes.")
        case .peerUnresponsive: self.init(504, "peer-unresponsive", "The peer stopped answering.")
        }
    }

    static let draining = ControlProblem(503, "draining", "The gateway is ending; ask another one.").retryable(
        after: 30)
    static func bodyTooLarge(_ limit: Int) -> ControlProblem {
        var problem = ControlProblem(
            413, "body-too-large", "The body is longer than \(limit) bytes; send less at a time.")
        problem.endsConnection = true
        return problem
    }
    static func unknownConnection(_ name: String) -> ControlProblem {
        ControlProblem(404, "unknown-connection", "There is no connection \(name.prefix(64)), and none is remembered.")
    }
}
