import WebSocketProtocol

/// What a client's task needs only until it is open; apart, so that an open one does not carry it.
final class OpeningState {
    let opening: ClientOpening
    var connecting: TransportOpening?
    /// `nil` once the response's head was read.
    var parser: ResponseParser? = ResponseParser()
    /// The 16 bytes that the server must answer.
    var nonce: [UInt8] = []
    /// Of the answer's heads, so far.
    var headBytes = 0
    /// The answer is being judged: nothing more is read of it.
    var isJudged = false

    init(_ opening: ClientOpening) {
        self.opening = opening
    }
}
