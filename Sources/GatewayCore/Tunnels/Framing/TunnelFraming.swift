/// What joins a stream with a WebSocket needs to remember, in both directions: nothing where bytes become binary messages
/// and back without a limit, as they do unless a route says otherwise.
final class TunnelFraming {
    /// What the stream becomes towards the WebSocket.
    var toMessages: StreamToMessages
    /// What messages become towards the stream.
    var toStream: MessagesToStream

    private init(_ framing: Framing, messageLimit: Int) {
        self.toMessages = StreamToMessages(framing, messageLimit: messageLimit)
        self.toStream = MessagesToStream(framing, messageLimit: messageLimit)
    }

    /// - Returns: `nil` where there is nothing to remember.
    static func needed(by settings: TunnelSettings) -> TunnelFraming? {
        let limit = settings.maximumMessageSize ?? settings.framing.assembledLimit
        if settings.framing == .binary, limit == .max { return nil }
        return TunnelFraming(settings.framing, messageLimit: limit)
    }
}

extension Framing {
    /// The message limit where the route gives none: only a framing that must hold whole messages needs one. Lines pass
    /// as fragments while they arrive, both ways.
    fileprivate var assembledLimit: Int {
        switch self {
        case .binary, .text, .lines, .base64: .max
        case .lengthPrefixed: TunnelSettings.assembledMessageSize
        }
    }
}
