/// Why a client's opening handshake came to nothing although a response arrived.
public enum HandshakeFailure: Error, Equatable, Sendable {
    /// Any status but 101; the body, if any, follows on the connection.
    case refused(ResponseHead)
    /// A 101 that we must not trust.
    case violated(ResponseViolation, ResponseHead)

    /// The response in question.
    public var response: ResponseHead {
        switch self {
        case .refused(let response), .violated(_, let response): response
        }
    }
}
