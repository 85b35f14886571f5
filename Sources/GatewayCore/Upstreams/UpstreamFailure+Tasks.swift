import SessionTasks
import TLSEngine
import WebSocketProtocol

extension UpstreamFailure {
    /// What a task that never opened says of its upstream.
    /// - Parameter connected: whether its connection stood, so that what took too long was a handshake.
    init(_ failure: TaskFailure?, response: ResponseHead?, connected: Bool) {
        switch failure {
        case .handshakeRefused(let status): self = .status(UInt16(clamping: status))
        case .timedOut: self = connected ? .handshakeTimeout : .connectTimeout
        case .secureConnectionFailed(let failure): self = failure.concernsCertificates ? .certificate : .tls
        case .protocolViolation: self = .invalidHandshake
        case .peerUnresponsive: self = .handshakeTimeout
        case .cannotConnect(let fault) where fault.isOwnLack: self = .ownResources
        case .cancelled, .directionClosed, .usage, .ended, .connectionLost, .cannotConnect, .messageTooLong, .closed,
            nil:
            self = response == nil ? .unreachable : .invalidHandshake
        }
    }

    /// What the client is told before its 101.
    func refusal(_ answer: ResponseHead?) -> HandshakeRefusal {
        var fields: [HTTPField] = []
        if self.passesAnswerOn, let answer {
            for name in Self.passedFields { fields += answer.fields.fields(name) }
        }
        return HandshakeRefusal(status: Int(self.status), explanation: self.explanation, fields: fields)
    }

    private var explanation: String {
        switch self {
        case .unreachable: "The upstream cannot be reached; try again later."
        case .tls: "The TLS handshake with the upstream failed; try again later."
        case .certificate:
            "The certificates of the upstream and the gateway do not fit; their operator must replace them."
        case .connectTimeout: "The upstream did not accept a connection in time; try again later."
        case .handshakeTimeout: "The upstream did not answer in time; try again later."
        case .status(let status): "The upstream answered the opening handshake with status \(status)."
        case .invalidHandshake: "The upstream's answer to the opening handshake is not valid."
        case .ownResources: "The gateway lacks resources for a connection to the upstream; try again later."
        }
    }
}
