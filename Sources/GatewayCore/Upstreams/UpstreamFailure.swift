import SessionTasks
import WebSocketProtocol

/// Why an upstream cannot serve a client, and the client's response.
package enum UpstreamFailure: Hashable, Sendable {
    /// Name resolution or connecting failed, or the connection was reset.
    case unreachable
    /// The proxy towards it cannot be reached, or does not connect to it.
    case proxy
    /// TLS: no handshake, or a broken record.
    case tls
    /// A certificate or key is unusable: the upstream's fails verification, or the upstream refuses ours.
    case certificate
    /// No connection within its time.
    case connectTimeout
    /// No answer to the opening handshake within its time.
    case handshakeTimeout
    /// The opening handshake was answered with this status.
    case status(UInt16)
    /// The answer was not HTTP, or a 101 that does not match the request (RFC 6455 §4.1).
    case invalidHandshake
    /// The gateway's own system lacks a resource: descriptors, memory, a local port.
    case ownResources

    /// Fields of the upstream's response that are forwarded with its status (lower case).
    private static let passedFields = ["retry-after", "www-authenticate"]

    /// Status of the response to the client's opening handshake: the upstream's own if it is meant for the client, 504
    /// after a timeout, else 502 (RFC 9110 §15.6.3, §15.6.5).
    package var status: UInt16 {
        switch self {
        case .status(let status): Self.isForwarded(status) ? status : 502
        case .connectTimeout, .handshakeTimeout: 504
        case .ownResources: 503
        case .unreachable, .proxy, .tls, .certificate, .invalidHandshake: 502
        }
    }

    /// Whether the status is the upstream's own, to be sent with `passedFields`.
    package var forwardsResponse: Bool {
        if case .status(let status) = self { Self.isForwarded(status) } else { false }
    }

    /// Whether the failure counts against the endpoint: an answer meant for the client (401, 403, 404, 429) does not,
    /// nor does a lack of our own resources.
    package var countsAgainstEndpoint: Bool {
        switch self {
        case .ownResources: false
        case .status(let status): !Self.isForwarded(status) || status == 503
        case .unreachable, .proxy, .tls, .certificate, .connectTimeout, .handshakeTimeout, .invalidHandshake: true
        }
    }

    /// Whether the same endpoint would fail again for the same reason: it is not tried again for this client.
    package var isPermanent: Bool { self == .certificate }

    /// Whether another attempt may succeed: not if the response is meant for the client.
    package var isRetryable: Bool { self.countsAgainstEndpoint || self == .ownResources }

    private static func isForwarded(_ status: UInt16) -> Bool {
        switch status {
        case 401, 403, 404, 429, 503: true
        default: false
        }
    }
}

extension UpstreamFailure {
    /// Response to the client before its 101.
    func refusal(_ response: ResponseHead?) -> HandshakeRefusal {
        var fields: [HTTPField] = []
        if self.forwardsResponse, let response {
            for name in Self.passedFields { fields += response.fields.fields(name) }
        }
        return HandshakeRefusal(status: Int(self.status), explanation: self.explanation, fields: fields)
    }

    private var explanation: String {
        switch self {
        case .unreachable: "The upstream cannot be reached; try again later."
        case .proxy: "The proxy towards the upstream does not connect to it; try again later."
        case .tls: "The TLS handshake with the upstream failed; try again later."
        case .certificate:
            "A certificate of the upstream or the gateway was refused; their operator must replace it."
        case .connectTimeout: "The upstream did not accept a connection in time; try again later."
        case .handshakeTimeout: "The upstream did not answer in time; try again later."
        case .status(let status): "The upstream answered the opening handshake with status \(status)."
        case .invalidHandshake: "The upstream's answer to the opening handshake is not valid."
        case .ownResources: "The gateway lacks resources for a connection to the upstream; try again later."
        }
    }
}
