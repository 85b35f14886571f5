import WebSocketProtocol

/// How an engine under test is made.
struct EngineSetting {
    /// The engine's; the stream is the other's.
    var role: Role
    var maximumMessageSize: Int?
    /// `nil`: permessage-deflate was not agreed.
    var deflate: PermessageDeflateParameters?
    var policy = DeflatePolicy(minimumSize: 0)

    static func receiving(
        from sender: Role, limit: Int? = nil, deflate: PermessageDeflateParameters? = nil
    ) -> EngineSetting {
        EngineSetting(role: sender == .client ? .server : .client, maximumMessageSize: limit, deflate: deflate)
    }
}
