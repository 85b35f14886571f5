/// Why a response does not open the WebSocket.
public enum HandshakeFailure: Error, Equatable, Sendable {
    /// Any status but 101; the body, if any, follows on the connection.
    case refused(ResponseHead)
    /// A 101 that we must not trust.
    case invalid(ResponseHead, ResponseViolation)

    /// The response in question.
    public var response: ResponseHead {
        switch self {
        case .refused(let response), .invalid(let response, _): response
        }
    }
}
