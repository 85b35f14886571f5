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

    let context: ControlContext

    private var rooms: RoomOperations { self.context.gateway.rooms }

    private static let one = PathTemplate(
        "/v1/users/{id}", .init("The user's name, percent-encoded: also `/` and `:`.", example: "42"))

    var operations: [Operation] {
        [
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
            self.restriction("muteUser", "mute", "Forbids a user for a time to publish in any room", .mute),
            self.lifting("unbanUser", "unban", "Lifts the ban of a user from every room", .ban),
            self.lifting("unmuteUser", "unmute", "Lifts the mute of a user in every room", .mute),
        ]
    }

    private static func name(_ call: ControlCall) -> String { call.parameters["id"] ?? "" }

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
