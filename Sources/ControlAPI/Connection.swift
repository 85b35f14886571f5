/// A stream or WebSocket task, or a connection with plain HTTP. Timestamps are RFC 3339 in UTC, durations milliseconds,
/// sizes bytes of payload; a member that does not apply, or was not selected by `fields`, is missing.
package struct Connection: ControlModel {
    @Member("Unique; the upstream side of tunnel 17 has the id 17u. In a cluster with the node's name: 17@b.")
    package var id: String?
    @Member("Of a cluster: the node that has the connection.") package var node: String?
    @Member(.words(["stream", "webSocket", "http"])) package var kind: String?
    @Member(.words(["accepted", "opened"], "Accepted by a listener, or opened by the gateway."))
    package var direction: String?
    @Member(.words(["opening", "open", "closing", "closed"])) package var state: String?
    @Member(.words(["suspended", "running", "canceling", "completed"], "State of the task."))
    package var taskState: String?
    @Member("Set by the client of the control plane.") package var description: String?
    @Member(.range(0...1, "A hint.")) package var priority: Double?
    @Member("Requested URL of a connection opened through the control plane.") package var url: String?
    @Member package var listener: String?
    @Member package var route: String?
    @Member("The upstream's name; the URL if the route's target is a URL.") package var upstream: String?
    @Member("URL of the chosen endpoint.") package var endpoint: String?
    @Member("The id of the connection on the tunnel's other side.") package var tunnelPartner: String?
    @Member package var peerAddress: String?
    @Member("Source address of a trusted PROXY header.") package var clientAddress: String?
    @Member("Name of the client's user; of plain HTTP, that of the latest request.") package var user: String?
    @Member package var localAddress: String?
    @Member package var subprotocol: String?
    @Member(.time()) package var createdAt: String?
    @Member(.time()) package var openedAt: String?
    @Member(.time()) package var lastActivityAt: String?
    @Member(.milliseconds()) package var ageMs: Double?
    @Member(.milliseconds()) package var idleMs: Double?
    @Member package var receivedBytes: UInt64?
    @Member package var sentBytes: UInt64?
    @Member package var receivedMessages: UInt64?
    @Member package var sentMessages: UInt64?
    @Member("Frames of every kind.") package var receivedFrames: UInt64?
    @Member package var sentFrames: UInt64?
    @Member("Bytes to be sent that the kernel has not accepted yet.") package var queuedSendBytes: Int?
    @Member("Bytes received but not delivered.") package var queuedReceiveBytes: Int?
    @Member package var unreadMessages: Int?
    @Member(
        .milliseconds(
            "How long reading from the peer was paused because its data could not be delivered."))
    package var receiveStalledMs: Double?
    @Member(
        .milliseconds(
            "How long data for this peer waited because the peer did not read it; in a tunnel, how long reading from the other "
                + "side was paused for that."))
    package var sendStalledMs: Double?
    @Member("Whether it is stalled now.") package var stalled: Bool?
    @Member package var suspended: Bool?
    @Member("Whether its data is forwarded to a tunnel partner, an echo or a chat room.") package var relayed: Bool?
    @Member package var inputClosed: Bool?
    @Member package var outputClosed: Bool?
    @Member package var ping: RoundTripTimes?
    @Member package var compression: Compression?
    @Member package var tls: TLSDetails?
    @Member package var handshake: Handshake?
    @Member(.range(0...65_535, "Code of the first Close frame, ours or the peer's (RFC 6455 §7.4); 1005 without one."))
    package var closeCode: Int?
    @Member package var closeReason: String?
    @Member("Party, phase and cause: `upstream/relaying/clean`.") package var terminationReason: String?
    @Member package var terminationDetail: String?
    @Member(.time()) package var closedAt: String?
    @Member package var labels: [String: String]?

    package init() {}
}

/// A page of connections. The `Link` header has the next page too (RFC 8288).
package struct ConnectionPage: ControlModel {
    @Member package var items: [Connection] = []
    @Member("Path and query of the next page; missing on the last one.") package var next: String?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A request that sets the description, the priority and the labels of a connection or a transfer.
package protocol AnnotatedRequest: StrictDecodable {
    var description: String? { get set }
    var priority: Double? { get set }
    var labels: [String: String]? { get set }
}

/// PATCH of a connection: missing members are not changed.
package struct ConnectionPatch: AnnotatedRequest {
    @Member(.text(limit: 1024)) package var description: String?
    @Member(.range(0...1)) package var priority: Double?
    @Member(.labels("Replaces all labels.")) package var labels: [String: String]?

    package init() {}
}

/// The opening handshake of a WebSocket; values of credentials are hidden.
package struct Handshake: ControlModel {
    @Member package var request = HandshakeHead()
    @Member package var response = HandshakeHead()

    package init() {}
}

/// A request or a response without its body.
package struct HandshakeHead: ControlModel {
    @Member("The first line: `GET /chat HTTP/1.1`.") package var line = ""
    @Member("In the order on the wire.") package var headers: [Header] = []

    package init() {}
}

/// One header field.
package struct Header: ControlModel {
    @Member package var name = ""
    @Member package var value = ""

    package init() {}
}

/// permessage-deflate on one connection.
package struct Compression: ControlModel {
    @Member("Payload bytes per byte on the wire, frame headers included; missing while nothing was sent.")
    package var sentRatio: Double?

    package init() {}
}

/// Round-trip times of pings; p50 and p99 are of the last 16.
package struct RoundTripTimes: ControlModel {
    @Member(.milliseconds()) package var lastMs: Double = 0
    @Member(.milliseconds()) package var p50Ms: Double = 0
    @Member(.milliseconds()) package var p99Ms: Double = 0
    @Member("Total number of answered pings.") package var count: UInt64 = 0

    package init() {}
}

/// Negotiated parameters of TLS.
package struct TLSDetails: ControlModel {
    @Member("`TLS 1.3`, for example.") package var version = ""
    @Member("IANA name of the cipher suite.") package var cipher = ""
    @Member("Negotiated by ALPN.") package var applicationProtocol: String?
    @Member("Server name sent by the client.") package var serverName: String?
    @Member package var resumed = false
    @Member("Sizes of the peer's certificates in DER, the leaf first.")
    package var peerCertificateSizesBytes: [Int] = []

    package init() {}
}
