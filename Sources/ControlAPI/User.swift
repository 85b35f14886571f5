/// A user with connections to rooms.
package struct User: ControlModel {
    @Member package var id = ""
    @Member("Total number of connections.") package var connectionCount = 0
    @Member("At most 1000, in the order of nodes and ids.") package var connections: [UserConnection] = []
    @Member("Bans and mutes of this user.") package var restrictions: [Restriction] = []
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
