/// An event, sent as the data of a Server-Sent Event or as a text message. `gap` means missed events.
package struct Event: Codable, Sendable, Equatable {
    /// Counts from 1 without gaps; also the `id` of the Server-Sent Event.
    package var number: UInt64
    /// `opened`, `closed`, `upgraded`, `limitHit`, `upstreamDown`, `upstreamUp`, `reloaded`, `reloadFailed`,
    /// `drainStarted`, `drainProgressed`, `drainEnded`, `transferStarted`, `transferEnded`, `transferFailed` or `gap`.
    package var type: String
    package var at: String?
    /// The id of a connection.
    package var connection: String?
    package var listener: String?
    package var route: String?
    /// The upstream's name.
    package var upstream: String?
    /// URL of the endpoint.
    package var endpoint: String?
    package var url: String?
    package var peerAddress: String?
    package var reason: String?
    package var detail: String?
    /// Of a closed connection: code of the first Close frame, ours or the peer's; 1005 if it has none.
    package var closeCode: Int?
    package var closeReason: String?
    /// Of a closed connection: payload bytes.
    package var receivedBytes: UInt64?
    package var sentBytes: UInt64?
    package var labels: [String: String]?
    package var count: Int?
    package var drain: String?
    /// The id of a transfer.
    package var transfer: String?
    /// Of a gap: the numbers that are missing.
    package var missedFrom: UInt64?
    package var missedTo: UInt64?

    package init(number: UInt64, type: String) {
        self.number = number
        self.type = type
    }
}
