import SessionTasks
import StreamTransport
import WebSocketProtocol

extension UpstreamFailure {
    /// What a task that never opened says of its upstream.
    /// - Parameter connected: whether its connection stood, so that what took too long was a handshake.
    init(_ failure: TaskFailure?, response: ResponseHead?, connected: Bool) {
        switch failure {
        case .handshakeRefused(let status): self = .status(UInt16(clamping: status))
        case .timedOut: self = connected ? .handshakeTimeout : .connectTimeout
        case .secureConnectionFailed: self = .tls
        case .protocolViolation: self = .invalidHandshake
        case .peerUnresponsive: self = .handshakeTimeout
        // Before it stands, a connection is lost by a reset, or because our own system had no room for it.
        case .connectionLost(let text) where !connected && text != TransportFailure.reset.description:
            self = .ownResources
        case .cancelled, .directionClosed, .usage, .ended, .connectionLost, .cannotConnect, .messageTooLong, .closed,
            nil:
            self = response == nil ? .unreachable : .invalidHandshake
        }
    }

    /// What the client is told before its 101.
    func refusal(_ answer: ResponseHead?) -> HandshakeRefusal {
        var fields: [HTTPField] = []
        if self.passesAnswerOn, let answer {
            for name in Self.passedFields {
                fields += answer.fields.values(name).map { HTTPField(name, $0) }
            }
        }
        return HandshakeRefusal(status: Int(self.status), explanation: self.explanation, fields: fields)
    }

    private var explanation: String {
        switch self {
        case .unreachable: "The upstream cannot be reached; try again later."
        case .tls: "No secure connection to the upstream came about; its operator must see to its certificate."
        case .connectTimeout: "The upstream did not accept a connection in time; try again later."
        case .handshakeTimeout: "The upstream did not answer in time; try again later."
        case .status(let status): "The upstream answered the opening handshake with status \(status)."
        case .invalidHandshake: "The upstream's answer to the opening handshake is not valid."
        case .ownResources: "The gateway has no room for a connection to the upstream now; try again later."
        }
    }
}
