/// An event, sent as the data of a Server-Sent Event or as a text message. `gap` means missed events.
package struct Event: ControlModel {
    package static let types = [
        "opened", "closed", "upgraded", "limitHit", "upstreamDown", "upstreamUp", "reloaded", "reloadFailed",
        "drainStarted", "drainProgressed", "drainEnded", "transferStarted", "transferEnded", "transferFailed", "gap",
    ]

    @Member("Counts from 1 without gaps, on each node.") package var number: UInt64 = 0
    @Member("Continues the stream after this event as `after`; names the process. The `id` of the Server-Sent Event.")
    package var position: String?
    @Member("Of a cluster: the node where it happened.") package var node: String?
    @Member(.words(Self.types)) package var type = ""
    @Member(.time()) package var at: String?
    @Member("The id of a connection.") package var connection: String?
    @Member package var listener: String?
    @Member package var route: String?
    @Member("The upstream's name.") package var upstream: String?
    @Member("URL of the endpoint.") package var endpoint: String?
    @Member package var url: String?
    @Member package var peerAddress: String?
    @Member("Name of the client's user.") package var user: String?
    @Member package var reason: String?
    @Member package var detail: String?
    @Member(.range(0...65_535, "Of a closed connection: code of the first Close frame (RFC 6455 §7.4), or 1005."))
    package var closeCode: Int?
    @Member package var closeReason: String?
    @Member("Of a closed connection: payload bytes.") package var receivedBytes: UInt64?
    @Member package var sentBytes: UInt64?
    @Member("Of a closed connection.") package var labels: [String: String]?
    @Member package var count: Int?
    @Member package var drain: String?
    @Member("The id of a transfer.") package var transfer: String?
    @Member("Of a gap: the numbers that are missing.") package var missedFrom: UInt64?
    @Member package var missedTo: UInt64?

    package init() {}
}
