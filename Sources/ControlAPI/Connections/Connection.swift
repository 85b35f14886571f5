/// One stream or WebSocket task, as it is shown. Timestamps are RFC 3339 in UTC, durations milliseconds, sizes bytes of
/// payload; a member that does not apply, or was not asked for with `fields`, is missing.
package struct Connection: Codable, Sendable, Equatable {
    /// Names it: `17`, or `17u` for what the gateway opened to the upstream on behalf of `17`.
    package var id: String?
    /// `stream` or `webSocket`.
    package var kind: String?
    /// `accepted` by a listener, or `opened` by the gateway.
    package var direction: String?
    /// `opening`, `open`, `closing` or `closed`.
    package var state: String?
    /// The task's own: `suspended`, `running`, `canceling` or `completed`.
    package var taskState: String?
    package var description: String?
    /// 0 to 1; a hint.
    package var priority: Double?
    /// What was asked for, of a connection opened by command.
    package var url: String?
    package var listener: String?
    package var route: String?
    /// The upstream's name; its URL where the route names that itself.
    package var upstream: String?
    /// The URL of the upstream's endpoint that was chosen.
    package var endpoint: String?
    /// The id of the connection that this one is joined with.
    package var tunnelPartner: String?
    package var peerAddress: String?
    /// Whom a trusted PROXY header named.
    package var clientAddress: String?
    package var localAddress: String?
    package var subprotocol: String?
    package var createdAt: String?
    package var openedAt: String?
    package var lastActivityAt: String?
    package var ageMs: Double?
    package var idleMs: Double?
    package var receivedBytes: UInt64?
    package var sentBytes: UInt64?
    package var receivedMessages: UInt64?
    package var sentMessages: UInt64?
    /// Frames of every kind.
    package var receivedFrames: UInt64?
    package var sentFrames: UInt64?
    /// Written, and not yet taken by the kernel.
    package var queuedSendBytes: Int?
    /// Received, and not yet asked for.
    package var queuedReceiveBytes: Int?
    package var unreadMessages: Int?
    /// How long the peer was not read because its data had nowhere to go.
    package var receiveStalledMs: Double?
    /// How long data for this peer waited because the peer did not take it; of a tunnel, how long the other side was
    /// not read for that.
    package var sendStalledMs: Double?
    /// Whether it is stalled now.
    package var stalled: Bool?
    package var suspended: Bool?
    /// Its data is passed on: to its tunnel partner, to an echo, to a chat room.
    package var relayed: Bool?
    package var inputClosed: Bool?
    package var outputClosed: Bool?
    package var ping: RoundTripTimes?
    package var compression: Compression?
    package var tls: TLSDetails?
    package var handshake: Handshake?
    /// Of the first Close frame, ours or the peer's; 1005 for one without a code.
    package var closeCode: Int?
    package var closeReason: String?
    /// Who ended it, in which phase, and how: `upstream/relaying/clean`.
    package var terminationReason: String?
    package var terminationDetail: String?
    package var closedAt: String?
    package var labels: [String: String]?

    package init(id: String? = nil) {
        self.id = id
    }
}
