/// A user with connections to rooms.
package struct User: ControlModel {
    @Member package var id = ""
    @Member("Total number of connections.") package var connectionCount = 0
    @Member("At most 1000, in the order of nodes and ids.") package var connections: [UserConnection] = []
    @Member("Bans and mutes of this user.") package var restrictions: [Restriction] = []
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A user in a list. `fields` may leave out all members but `id`.
package struct UserSummary: ControlModel {
    package static let roomLimit = 32

    @Member package var id = ""
    @Member("Number of connections on all nodes; with `room`, of those in it.") package var connectionCount: Int?
    @Member("Rooms of these connections: at most 32, in the order of their names.") package var rooms: [String]?
    @Member("Whether the user is in more rooms than these.") package var hasMoreRooms: Bool?
    @Member("Of a cluster: names of the nodes that have the connections.") package var nodes: [String]?

    package init() {}
}

/// A page of users, in the order of their names. The `Link` header has the next page too (RFC 8288).
package struct UserPage: ControlModel {
    @Member package var items: [UserSummary] = []
    @Member("Path and query of the next page; missing on the last one.") package var next: String?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}

/// A connection of a user.
package struct UserConnection: ControlModel {
    @Member("Identifies the connection to other clients.") package var client = ""
    @Member("The id of the connection.") package var connection = ""
    @Member("Of a cluster: the node that has the connection.") package var node: String?
    @Member("Total number of rooms that it is in.") package var roomCount = 0
    @Member("At most 128, in the order of their names.") package var rooms: [String] = []

    package init() {}
}

/// POST …:disconnect: ends the user's connections.
package struct UserDisconnect: StrictDecodable {
    @Member("Only this connection's client.") package var client: String?
    @Member(
        .range(
            3000...4999,
            "Code of the Close frame. Clients connect again unless it is 3500 to 3999 or 4500 to 4999. Default: 3503."))
    package var code: Int?
    @Member(.text(limit: 123, "Reason of the Close frame. Default: force disconnect.")) package var reason: String?

    package init() {}
}

/// POST …:send: a message to the user's clients, outside of all rooms. Exactly one of `data` and `b64data`.
package struct UserSend: StrictDecodable {
    @Member("Any JSON value but null; clients get it unchanged.") package var data: JSONValue?
    @Member(.base64("Bytes that are not JSON.")) package var b64data: String?
    @Member("Only this client.") package var client: String?

    package init() {}
}

/// POST …:ban or :mute of a user in every room.
package struct UserRestriction: StrictDecodable {
    @Member(.milliseconds(1000...31_536_000_000, "How long. Default: 1 h.")) package var durationMs: Double?

    package init() {}
}
