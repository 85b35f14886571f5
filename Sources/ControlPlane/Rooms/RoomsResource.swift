import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Rooms
import WireText

/// `/v1/rooms`: the rooms, their members, and what operators do to members.
struct RoomsResource: Sendable {
    static let roomsPerPage = 100
    static let maximumRoomsPerPage = 1000

    let context: ControlContext

    var hub: RoomHub { self.context.hub }
    var rooms: RoomOperations { self.context.gateway.rooms }
    var publisher: RoomPublisher { RoomPublisher(rooms: self.rooms) }

    static let one = PathTemplate(
        "/v1/rooms/{name}", .init("The room's name, percent-encoded: also `/` and `:`.", example: "chat%3Alobby"))

    var operations: [Operation] { self.reading + self.publishing + self.moderating }

    private var reading: [Operation] {
        [
            Operation("listRooms", .get, "/v1/rooms", .read, Self.listDocument) { try await self.list($0) },
            Operation(
                "getRoom", .get, Self.one, .read,
                OperationDocument(
                    "Gets a room that has members, or keeps publications",
                    responses: [.init(200, "The room", .json(Room.self))], problems: [404])
            ) { call in try self.withRoom(call) { .json(self.model($0)) } },
            Operation("listRoomMembers", .get, Self.one + "/members", .read, Self.membersDocument) {
                try await self.members($0)
            },
            Operation(
                "listRoomRestrictions", .get, Self.one + "/restrictions", .read,
                OperationDocument(
                    "Lists bans and mutes in a room, those for every room included",
                    responses: [.init(200, "Restrictions in force", .json(RestrictionList.self))], problems: [404])
            ) { call in .json(self.restrictions(in: Self.name(call))) },
        ]
    }

    private static let listDocument = OperationDocument(
        "Lists rooms page by page, in the order of their names",
        parameters: [
            "pattern": .text("Names; `*` matches any text.", example: "chat:*"),
            "minMembers": .integer(0...100_000_000, "Minimum number of members.", example: 1),
            "limit": .integer(1...Self.maximumRoomsPerPage, "Rooms per page. Default: 100.", example: 100),
            "cursor": .cursor,
        ],
        responses: [.init(200, "A page", .json(RoomPage.self), headers: .nextPage)])

    private static let membersDocument = OperationDocument(
        "Lists the members of a room page by page, whether or not its policy shows them to clients",
        parameters: [
            "limit": .integer(1...Self.maximumRoomsPerPage, "Members per page. Default: 100.", example: 100),
            "cursor": .cursor,
        ],
        responses: [.init(200, "A page", .json(RoomMemberPage.self), headers: .nextPage)], problems: [404])

    // MARK: Lookup

    static func name(_ call: ControlCall) -> String { call.parameters["name"] ?? "" }

    /// The path of a room.
    static func path(_ name: String) -> String {
        // Clients would remove dot segments from a path (RFC 3986 §5.2.4).
        let segment = name == "." || name == ".." ? String(repeating: "%2E", count: name.count) : nil
        return "/v1/rooms/\(segment ?? PercentCoding.encoded(name))"
    }

    /// - Throws: `ControlProblem` 404 for a room without members that keeps nothing.
    func withRoom<Value>(_ call: ControlCall, _ body: (SharedRoom) throws -> Value) throws -> Value {
        let room = try self.acquire(call)
        defer { self.hub.release(room) }
        return try body(room)
    }

    /// Runs what the broker of the room does, with its name.
    /// - Throws: 404 for a room that this gateway does not have, unless it is a node of a cluster: Redis may have it.
    func withBroker<Value>(
        _ call: ControlCall, _ body: (String) async throws(RoomBrokerError) -> Value
    ) async throws(ControlProblem) -> Value {
        if !self.hub.isShared { self.hub.release(try self.acquire(call)) }
        do {
            return try await body(Self.name(call))
        } catch {
            throw RoomPublisher.Refusal.problem(error)
        }
    }

    /// The room must be released.
    func acquire(_ call: ControlCall) throws(ControlProblem) -> SharedRoom {
        let name = Self.name(call)
        guard let room = self.hub.acquireExisting(name) else {
            throw ControlProblem(
                404, "unknown-room", "The room \(name.prefix(64)) has no members and keeps no publications.")
        }
        return room
    }

    // MARK: Reading

    private func list(_ call: ControlCall) async throws -> Response {
        if let cluster = self.context.cluster, call.forwardedBy == nil {
            return try await self.list(call, on: NodeCaller(cluster: cluster))
        }
        return try self.listOwn(call)
    }

    /// The rooms of this node.
    func listOwn(_ call: ControlCall) throws -> Response {
        let limit = try call.query.integer("limit", in: 1...Self.maximumRoomsPerPage) ?? Self.roomsPerPage
        let least = try call.query.integer("minMembers", in: 0...100_000_000) ?? 0
        let pattern = try call.query.nonEmptyValue("pattern").map { RoomPattern($0) }
        let last = try call.query.value("cursor")
        var items: [Room] = []
        for room in self.hub.rooms {
            if let last, room.name <= last { continue }
            if let pattern, !pattern.matches(room.name) { continue }
            let model = self.model(room)
            guard model.members >= least else { continue }
            items.append(model)
            if items.count > limit { break }
        }
        let next = items.count > limit ? items.dropLast().last?.name : nil
        return .page(
            items.prefix(limit).map { JSONBody.encode($0) },
            next: next.map { call.query.nextPage(of: "/v1/rooms", cursor: $0) })
    }

    /// RFC 8288 §3.
    static func link(_ next: String?) -> HTTPFields {
        next.map { [.link: "<\($0)>; rel=\"next\""] } ?? [:]
    }

    private func model(_ room: SharedRoom) -> Room {
        let counts = room.counts(now: self.hub.now)
        return Room {
            $0.name = room.name
            $0.policy = room.policy.name
            $0.members = counts.members
            $0.clients = counts.clients
            $0.users = counts.users
            $0.publications = counts.publications
            $0.historyBytes = counts.historyBytes
            $0.offset = counts.position?.offset
            $0.epoch = counts.position?.epoch
        }
    }

    private func members(_ call: ControlCall) async throws -> Response {
        if let cluster = self.context.cluster { return try await self.members(call, on: NodeCaller(cluster: cluster)) }
        let limit = try call.query.integer("limit", in: 1...Self.maximumRoomsPerPage) ?? Self.roomsPerPage
        let position = try Self.memberPosition(call.query)
        let room = try self.acquire(call)
        defer { self.hub.release(room) }
        let members = await self.rooms.members(of: room.name, after: position, limit: limit + 1)
        let next = members.count > limit ? members.dropLast().last?.position.text : nil
        let path = next.map { call.query.nextPage(of: "\(Self.path(room.name))/members", cursor: $0) }
        let items = members.prefix(limit).map { member in
            var text = JSONText(capacity: 256)
            self.write(member, to: &text)
            return text.bytes
        }
        return .page(items, next: path)
    }

    static func memberPosition(_ query: Query) throws(ControlProblem) -> RoomOperations.MemberPosition? {
        guard let text = try query.value("cursor") else { return nil }
        guard let position = RoomOperations.MemberPosition(text) else {
            throw ControlProblem(400, "invalid-cursor", "The cursor is not one of a list of members.")
                .at(parameter: "cursor")
        }
        return position
    }

    func write(_ member: RoomOperations.Member, to text: inout JSONText) {
        let connection = member.connection.map { self.context.qualified("\($0)") }
        RoomWriter.write(member.info, connection: connection, node: self.context.node, to: &text)
    }

    // MARK: Moderation

    private var moderating: [Operation] {
        [
            Operation("kickRoomMembers", .post, Self.one + ":kick", .operate, Self.kickDocument) {
                try await self.kick($0)
            },
            Operation("disconnectRoomMembers", .post, Self.one + ":disconnect", .operate, Self.disconnectDocument) {
                try await self.disconnect($0)
            },
            self.restriction("banFromRoom", "ban", "Bans a user from a room for a time, and removes its clients", .ban),
            self.restriction("muteInRoom", "mute", "Forbids a user to publish in a room for a time", .mute),
            self.lifting("unbanFromRoom", "unban", "Lifts the ban of a user from a room", .ban),
            self.lifting("unmuteInRoom", "unmute", "Permits a user again to publish in a room", .mute),
        ]
    }

    private static let kickDocument = OperationDocument(
        "Removes members from a room, all or those of one user; connections stay, except those whose only purpose is the room",
        body: [.json(RoomKick.self)],
        responses: [.init(200, "The number of members", .json(ClientCount.self))], problems: [404])

    private static let disconnectDocument = OperationDocument(
        "Ends the connections of a room's members, all or those of one user", body: [.json(RoomDisconnect.self)],
        responses: [.init(200, "The number of connections", .json(ClientCount.self))], problems: [404])

    private func restriction(
        _ name: String, _ verb: String, _ summary: String, _ kind: Moderation.Kind
    ) -> Operation {
        let document = OperationDocument(
            summary, body: [.json(RoomRestriction.self)], isBodyRequired: true,
            responses: [.init(200, "The restriction", .json(RestrictionList.self))], problems: [404, 429])
        return Operation(name, .post, Self.one + ":\(verb)", .operate, document) { call in
            let request = try await call.decode(RoomRestriction.self)
            let room = Self.name(call)
            try await Restrictions(self.context).begin(kind, of: request.user, in: room, ms: request.durationMs)
            if kind == .ban { _ = await self.rooms.kick(.init(user: request.user), from: room) }
            return .json(self.restrictions(in: room) { $0.user == request.user })
        }
    }

    private func lifting(_ name: String, _ verb: String, _ summary: String, _ kind: Moderation.Kind) -> Operation {
        let document = OperationDocument(
            summary, body: [.json(RoomRestrictionEnd.self)], isBodyRequired: true,
            responses: [.init(204, "Lifted")], problems: [404])
        return Operation(name, .post, Self.one + ":\(verb)", .operate, document) { call in
            let request = try await call.decode(RoomRestrictionEnd.self)
            try await Restrictions(self.context).end(kind, of: request.user, in: Self.name(call))
            return .noContent
        }
    }

    private func restrictions(
        in room: String, where isWanted: (Moderation.Entry) -> Bool = { _ in true }
    ) -> RestrictionList {
        RestrictionList {
            $0.items = Restrictions(self.context).list { ($0.room ?? room) == room && isWanted($0) }
        }
    }

    private func kick(_ call: ControlCall) async throws -> Response {
        let request = try await call.decode(RoomKick.self)
        let selection = try Self.selection(request.user, request.client)
        let room = try self.acquire(call)
        defer { self.hub.release(room) }
        let count = await self.rooms.kick(selection, from: room.name)
        return .json(ClientCount { $0.clients = count })
    }

    private func disconnect(_ call: ControlCall) async throws -> Response {
        let request = try await call.decode(RoomDisconnect.self)
        let selection = try Self.selection(request.user, request.client)
        let room = try self.acquire(call)
        defer { self.hub.release(room) }
        let count = await self.rooms.disconnectMembers(
            of: room.name, selection, .init(code: request.code, reason: request.reason))
        return .json(ClientCount { $0.clients = count })
    }

    /// - Throws: `ControlProblem` 422 for an empty value: it would select everyone without a name, or without a protocol.
    private static func selection(
        _ user: String?, _ client: String?
    ) throws(ControlProblem) -> RoomOperations.ClientSelection? {
        guard client != "" else { throw .invalid("/client", "client is empty; give one, or leave client out.") }
        guard user != "" || client != nil else {
            throw .invalid("/user", "user is empty; give one, or leave user out.")
        }
        guard user != nil || client != nil else { return nil }
        return RoomOperations.ClientSelection(user: user ?? "", client: client)
    }
}

extension RoomOperations.MemberPosition {
    var text: String { "\(self.loop).\(self.number)" }

    fileprivate init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let loop = Int(parts[0]), let number = UInt64(parts[1]) else { return nil }
        self.init(loop: loop, number: number)
    }
}

extension Disconnect {
    /// - Parameter code: 3000 to 4999.
    init(code: Int?, reason: String?) {
        let usual = Disconnect.forceNoReconnect
        self.init(code.flatMap { UInt16(exactly: $0) } ?? usual.code, reason ?? usual.reason)
    }
}

/// Bans and mutes of users.
struct Restrictions: Sendable {
    private static let listLimit = 1000
    private static let defaultDuration = Duration.seconds(3600)

    private let rooms: RoomOperations
    private let cluster: GatewayCluster?

    init(_ context: ControlContext) {
        self.rooms = context.gateway.rooms
        self.cluster = context.cluster
    }

    /// - Parameter room: `nil` is every room.
    func begin(
        _ kind: Moderation.Kind, of user: String, in room: String?, ms: Double?
    ) async throws(ControlProblem) {
        guard !user.isEmpty, user.utf8.count <= 1024 else {
            throw .invalid("/user", "user must have 1 to 1024 bytes; anonymous users cannot be banned or muted.")
        }
        let duration = ms.flatMap { Duration(milliseconds: $0) } ?? Self.defaultDuration
        let isAdded =
            if let cluster = self.cluster {
                await cluster.restrict(kind, user: user, in: room, for: duration)
            } else {
                self.rooms.restrict(kind, user: user, in: room, for: duration)
            }
        guard isAdded else {
            throw ControlProblem(
                429, "too-many-restrictions",
                "There are \(Moderation.limit) bans and mutes already; wait until some end, or lift some.")
        }
    }

    /// - Throws: `ControlProblem` 404 if there is none.
    func end(_ kind: Moderation.Kind, of user: String, in room: String?) async throws(ControlProblem) {
        let isLifted =
            if let cluster = self.cluster {
                await cluster.lift(kind, user: user, in: room)
            } else {
                self.rooms.lift(kind, user: user, in: room)
            }
        guard isLifted else {
            throw ControlProblem(
                404, "unknown-restriction",
                "There is no \(kind.rawValue) of \(user.prefix(64)) \(room == nil ? "in every room" : "in this room").")
        }
    }

    /// At most 1000.
    func list(where isWanted: (Moderation.Entry) -> Bool) -> [Restriction] {
        self.rooms.restrictions.filter { isWanted($0.entry) }.prefix(Self.listLimit).map { entry, remaining in
            Restriction {
                $0.kind = entry.kind.rawValue
                $0.user = entry.user
                $0.room = entry.room
                $0.remainingMs = Double((remaining.wholeMicroseconds + 999) / 1000)
            }
        }
    }
}
