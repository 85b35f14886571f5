/// A room that has members, or keeps publications.
package struct Room: ControlModel {
    @Member package var name = ""
    @Member("Name of its policy in `rooms.policies`; `default` without policies.") package var policy = ""
    @Member("Members of every kind, on all nodes.") package var members = 0
    @Member("Connections in the list of presence; 0 if the policy keeps none.") package var clients = 0
    @Member("Users among them. In lists of a cluster the sum of its nodes: a user on two of them counts twice.")
    package var users = 0
    @Member("Publications in the history.") package var publications = 0
    @Member("Memory of the history.") package var historyBytes = 0
    @Member("Offset of the newest publication; missing if the room keeps no history.") package var offset: UInt64?
    @Member("Identifies the stream to which the offset belongs.") package var epoch: String?
    @Member("Of one room in a cluster: the nodes that have it.") package var nodes: [RoomNode]?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A room on one node of a cluster.
package struct RoomNode: ControlModel {
    @Member("Name of the node.") package var node = ""
    @Member("Members on this node.") package var members = 0

    package init() {}
}

/// A page of rooms, in the order of their names. The `Link` header has the next page too (RFC 8288).
package struct RoomPage: ControlModel {
    @Member package var items: [Room] = []
    @Member("Path and query of the next page; missing on the last one.") package var next: String?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A member of a room.
package struct RoomMember: ControlModel {
    @Member("Identifies the connection to other clients; missing for a member that the room does not show.")
    package var client: String?
    @Member("Missing for an anonymous user.") package var user: String?
    @Member("The id of its connection.") package var connection: String?
    @Member("Of a cluster: the node that has the connection.") package var node: String?
    @Member("From the connection's token.") package var connectionInfo: JSONValue?
    @Member("From the token of the membership.") package var roomInfo: JSONValue?

    package init() {}
}

/// A page of members, in the order in which each loop of the gateway got them.
package struct RoomMemberPage: ControlModel {
    @Member package var items: [RoomMember] = []
    @Member("Path and query of the next page; missing on the last one.") package var next: String?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A message published in a room. It has either `data` or `b64data`.
package struct RoomPublication: ControlModel {
    @Member("Missing if the room keeps no history.") package var offset: UInt64?
    @Member(.time()) package var at: String?
    @Member("JSON as it was published.") package var data: JSONValue?
    @Member(.base64("Data that is not JSON.")) package var b64data: String?
    @Member package var tags: [String: String]?
    @Member("The client that published it; missing if the server did.") package var publisher: RoomMember?

    package init() {}
}

/// A page of a room's history.
package struct RoomHistoryPage: ControlModel {
    @Member package var items: [RoomPublication] = []
    @Member("Offset of the newest publication.") package var offset: UInt64 = 0
    @Member("Identifies the stream to which offsets belong.") package var epoch = ""
    @Member("Path and query of the next page; missing on the last one.") package var next: String?

    package init() {}
}

/// An event of a room. `gap`: publications after the requested position are missing. `ended` is the last event.
package struct RoomEvent: ControlModel {
    package static let types = ["following", "gap", "publication", "joined", "left", "ended"]

    @Member(.words(Self.types)) package var type = ""
    @Member("Of `following` and `gap`: position of the newest publication that is not sent as new.")
    package var offset: UInt64?
    @Member package var epoch: String?
    @Member package var publication: RoomPublication?
    @Member("The client that joined or left.") package var member: RoomMember?
    @Member("Why the stream ended.") package var reason: String?

    package init() {}
}

/// POST …:publish: one message. Exactly one of `data` and `b64data`.
package struct RoomPublish: StrictDecodable {
    @Member("Any JSON value but null; members get it unchanged.") package var data: JSONValue?
    @Member(.base64("Bytes that are not JSON.")) package var b64data: String?
    @Member(.labels("Sent with the message.")) package var tags: [String: String]?
    @Member("Whether the history does not keep it. Default: false.") package var skipHistory: Bool?
    @Member(
        .text(
            limit: 255, "Publishing again in the same room with this key within 5 min returns the first position only.")
    )
    package var idempotencyKey: String?

    package init() {}
}

/// Position of a message in its room's stream. Members are missing if the room keeps no history.
package struct RoomPosition: ControlModel {
    @Member package var offset: UInt64?
    @Member package var epoch: String?

    package init() {}
}

/// POST /v1/rooms:broadcast: the same message in several rooms.
package struct RoomBroadcast: StrictDecodable {
    package static let roomLimit = 1000

    @Member("Names of 1 to 1000 rooms.") package var rooms: [String] = []
    @Member("Any JSON value but null; members get it unchanged.") package var data: JSONValue?
    @Member(.base64("Bytes that are not JSON.")) package var b64data: String?
    @Member(.labels("Sent with the message.")) package var tags: [String: String]?
    @Member("Whether the histories do not keep it. Default: false.") package var skipHistory: Bool?
    @Member(.text(limit: 255, "As for publishing in one room; acts in each room.")) package var idempotencyKey: String?

    package init() {}
}

/// Result of a broadcast in one room: a position, or the code of a problem.
package struct RoomBroadcastResult: ControlModel {
    @Member package var room = ""
    @Member package var offset: UInt64?
    @Member package var epoch: String?
    @Member("Code of the problem; missing if the message was published.") package var problem: String?
    @Member package var detail: String?

    package init() {}
}

/// Results of a broadcast.
package struct RoomBroadcastAnswer: ControlModel {
    @Member("In the order of the request.") package var items: [RoomBroadcastResult] = []

    package init() {}
}

/// POST …:kick: removes members. Without `user` and `client`, all.
package struct RoomKick: StrictDecodable {
    @Member("Only this user's clients.") package var user: String?
    @Member("Only this client; of a user with a name, `user` is needed too.") package var client: String?

    package init() {}
}

/// POST …:disconnect: ends connections.
package struct RoomDisconnect: StrictDecodable {
    @Member("Of a room: only this user's clients. Default: all members.") package var user: String?
    @Member("Only this client; of a user with a name, `user` is needed too.") package var client: String?
    @Member(
        .range(
            3000...4999,
            "Code of the Close frame. Clients connect again unless it is 3500 to 3999 or 4500 to 4999. Default: 3503."))
    package var code: Int?
    @Member(.text(limit: 123, "Reason of the Close frame. Default: force disconnect.")) package var reason: String?

    package init() {}
}

/// POST …:ban or :mute.
package struct RoomRestriction: StrictDecodable {
    @Member package var user = ""
    @Member(.milliseconds(1000...31_536_000_000, "How long. Default: 1 h.")) package var durationMs: Double?

    package init() {}
}

/// POST …:unban or :unmute.
package struct RoomRestrictionEnd: StrictDecodable {
    @Member package var user = ""

    package init() {}
}

/// A ban, whose user may not enter, or a mute, whose user may not publish.
package struct Restriction: ControlModel {
    @Member(.words(["ban", "mute"])) package var kind = ""
    @Member package var user = ""
    @Member("Missing if it holds in every room.") package var room: String?
    @Member(.milliseconds()) package var remainingMs: Double = 0

    package init() {}
}

/// Bans and mutes in force.
package struct RestrictionList: ControlModel {
    @Member("At most 1000, in the order of the users' names.") package var items: [Restriction] = []

    package init() {}
}

/// How many clients an operation concerned.
package struct ClientCount: ControlModel {
    @Member("Connections that were removed, ended or reached.") package var clients = 0
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}
