import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Rooms
import WireText

/// `/v1/users`: users of the rooms, by the names that their tokens or a trusted proxy give them.
struct UsersResource: Sendable {
    /// Connections in one response.
    private static let connectionLimit = 1000
    /// Names of rooms for each of them.
    private static let roomLimit = 128

    static let all = "/v1/users"
    private static let usersPerPage = 100
    private static let maximumUsersPerPage = 1000

    let context: ControlContext

    private var rooms: RoomOperations { self.context.gateway.rooms }

    private static let one = PathTemplate(
        "/v1/users/{id}", .init("The user's name, percent-encoded: also `/` and `:`.", example: "42"))

    var operations: [Operation] {
        [
            Operation("listUsers", .get, "/v1/users", .read, Self.listDocument) { try await self.list($0) },
            Operation(
                "getUser", .get, Self.one, .read,
                OperationDocument(
                    "Gets a user who is connected, banned or muted",
                    responses: [.init(200, "Connections and restrictions", .json(User.self))], problems: [404])
            ) { try await self.get($0) },
            Operation(
                "disconnectUser", .post, Self.one + ":disconnect", .operate,
                OperationDocument(
                    "Ends a user's connections", body: [.json(UserDisconnect.self)],
                    responses: [.init(200, "The number of connections", .json(ClientCount.self))], problems: [404])
            ) { try await self.disconnect($0) },
            Operation(
                "sendToUser", .post, Self.one + ":send", .operate,
                OperationDocument(
                    "Sends a message to a user's clients, outside of all rooms", body: [.json(UserSend.self)],
                    isBodyRequired: true,
                    responses: [.init(200, "The number of connections", .json(ClientCount.self))], problems: [404]),
                bodyLimit: RoomsResource.publishLimit
            ) { try await self.send($0) },
            self.restriction(
                "banUser", "ban", "Bans a user from every room for a time, and removes its clients from all", .ban),
            self.restriction("muteUser", "mute", "Forbids a user to publish in any room for a time", .mute),
            self.lifting("unbanUser", "unban", "Lifts the ban of a user from every room", .ban),
            self.lifting("unmuteUser", "unmute", "Lifts the mute of a user in every room", .mute),
        ]
    }

    private static let listDocument = OperationDocument(
        "Lists the users who are connected to rooms page by page, in the order of their names of up to \(UserSelection.nameLimit) bytes",
        parameters: [
            "pattern": .text("Names; `*` matches any text.", example: "ad*"),
            "room": .text("Only connections that are in this room.", example: "chat:lobby"),
            "fields": .text(
                "Names of the members to include besides `id`, separated by commas. Default: all.",
                example: "connectionCount,nodes"),
            "limit": .integer(1...Self.maximumUsersPerPage, "Users per page. Default: 100.", example: 100),
            "cursor": .cursor,
        ],
        responses: [.init(200, "A page", .json(UserPage.self), headers: .nextPage)])

    private static func name(_ call: ControlCall) -> String { call.parameters["id"] ?? "" }

    // MARK: Lists

    private func list(_ call: ControlCall) async throws -> Response {
        guard let cluster = self.context.cluster, call.forwardedBy == nil else { return try await self.listOwn(call) }
        // Other nodes would refuse an invalid query too, but not say so.
        _ = try Self.fields(call.query)
        _ = try Self.selection(call.query)
        return try await NameListing<UserSummary>(
            nodes: NodeCaller(cluster: cluster), call: call, path: Self.all, limit: try Self.limit(call.query),
            forwarded: ["pattern", "room", "fields"], own: { try await self.listOwn($0) }
        ).response()
    }

    /// The users of this node.
    private func listOwn(_ call: ControlCall) async throws -> Response {
        let fields = try Self.fields(call.query)
        let page = await self.rooms.users(
            try Self.selection(call.query), limit: try Self.limit(call.query),
            roomLimit: fields.isDisjoint(with: ["rooms", "hasMoreRooms"]) ? 0 : UserSummary.roomLimit)
        var items: [[UInt8]] = []
        var bytes = 0
        for user in page.users {
            // A page must fit into one message between nodes.
            guard bytes < NodePage.byteLimit else { break }
            items.append(JSONBody.encode(self.summary(user, fields)))
            bytes += items.last?.count ?? 0
        }
        let hasMore = page.hasMore || items.count < page.users.count
        let last = hasMore && !items.isEmpty ? page.users[items.count - 1].name : nil
        return .page(items, next: last.map { call.query.nextPage(of: Self.all, cursor: $0) })
    }

    private func summary(_ user: ConnectedUser, _ fields: Set<String>) -> UserSummary {
        UserSummary {
            $0.id = user.name
            if fields.contains("connectionCount") { $0.connectionCount = user.connectionCount }
            if fields.contains("rooms") { $0.rooms = user.rooms }
            if fields.contains("hasMoreRooms") { $0.hasMoreRooms = user.hasMoreRooms }
            if fields.contains("nodes") { $0.nodes = self.context.node.map { [$0] } }
        }
    }

    private static func limit(_ query: Query) throws(ControlProblem) -> Int {
        try query.integer("limit", in: 1...Self.maximumUsersPerPage) ?? Self.usersPerPage
    }

    private static func selection(_ query: Query) throws(ControlProblem) -> UserSelection {
        UserSelection(
            pattern: try query.nonEmptyValue("pattern").map { RoomPattern($0) }, room: try query.nonEmptyValue("room"),
            after: try query.value("cursor"))
    }

    /// The members of each user that the parameter `fields` selects.
    private static func fields(_ query: Query) throws(ControlProblem) -> Set<String> {
        let all = UserSummary.members.map(\.name)
        let names = try query.set("fields", expecting: "a list of \(all.joined(separator: ", "))") {
            all.contains($0) ? $0 : nil
        }
        return names.isEmpty ? Set(all) : names
    }

    // MARK: One user

    private func restriction(
        _ name: String, _ verb: String, _ summary: String, _ kind: Moderation.Kind
    ) -> Operation {
        let document = OperationDocument(
            summary, body: [.json(UserRestriction.self)],
            responses: [.init(200, "The restrictions in every room", .json(RestrictionList.self))],
            problems: [404, 429])
        return Operation(name, .post, Self.one + ":\(verb)", .operate, document) { call in
            let request = try await call.decode(UserRestriction.self)
            let user = Self.name(call)
            let restrictions = Restrictions(self.context)
            try await restrictions.begin(kind, of: user, in: nil, ms: request.durationMs)
            if kind == .ban { _ = await self.rooms.unsubscribeFromAll(.init(user: user)) }
            return .json(RestrictionList { $0.items = restrictions.list { $0.user == user && $0.room == nil } })
        }
    }

    private func lifting(_ name: String, _ verb: String, _ summary: String, _ kind: Moderation.Kind) -> Operation {
        let document = OperationDocument(summary, responses: [.init(204, "Lifted")], problems: [404])
        return Operation(name, .post, Self.one + ":\(verb)", .operate, document) { call in
            try await Restrictions(self.context).end(kind, of: Self.name(call), in: nil)
            return .noContent
        }
    }

    private func get(_ call: ControlCall) async throws -> Response {
        let name = Self.name(call)
        let entries = self.rooms.entries(.init(user: name))
        let restrictions = Restrictions(self.context).list { $0.user == name }
        guard !entries.isEmpty || !restrictions.isEmpty else {
            throw ControlProblem(
                404, "unknown-user", "The user \(name.prefix(64)) is neither connected nor banned or muted.")
        }
        var connections: [UserConnection] = []
        for entry in entries.prefix(Self.connectionLimit) {
            let rooms = await self.rooms.rooms(of: entry)
            connections.append(
                UserConnection {
                    $0.client = entry.client
                    $0.connection = self.context.qualified("\(entry.connection)")
                    $0.node = self.context.node
                    $0.roomCount = rooms.count
                    $0.rooms = Array(rooms.prefix(Self.roomLimit))
                })
        }
        return .json(
            User { [connections] in
                $0.id = name
                $0.connectionCount = entries.count
                $0.connections = connections
                $0.restrictions = restrictions
            })
    }

    private func disconnect(_ call: ControlCall) async throws -> Response {
        let request = try await call.decode(UserDisconnect.self)
        let count = await self.rooms.disconnect(
            .init(user: Self.name(call), client: request.client), .init(code: request.code, reason: request.reason))
        return .json(ClientCount { $0.clients = count })
    }

    private func send(_ call: ControlCall) async throws -> Response {
        let body = try await call.jsonBytes()
        let request = try JSONBody.decode(UserSend.self, from: body)
        let data = try RoomPublisher.payload(request.data, request.b64data, in: body)
        let count = await self.rooms.send(data, to: .init(user: Self.name(call), client: request.client))
        return .json(ClientCount { $0.clients = count })
    }
}
