import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Rooms
import WireText

/// Messages of rooms: publishing, the history, and following a room.
extension RoomsResource {
    private static let defaultLimit = 100
    private static let maximumLimit = 1000
    /// Bytes of data in one page of a history, from which on no further publication is added.
    private static let pageBytes = 4 << 20
    /// Longest body of a request that publishes, in bytes.
    static let publishLimit = 16 << 20
    private static let defaultHeartbeat = Duration.seconds(15)

    var publishing: [Operation] {
        [
            Operation(
                "publish", .post, Self.one + ":publish", .operate, Self.publishDocument, bodyLimit: Self.publishLimit
            ) { try await self.publish($0) },
            Operation(
                "broadcast", .post, "/v1/rooms:broadcast", .operate, Self.broadcastDocument,
                bodyLimit: Self.publishLimit
            ) { try await self.broadcast($0) },
            Operation("getRoomHistory", .get, Self.one + "/history", .operate, Self.historyDocument) {
                try await self.history($0)
            },
            Operation(
                "deleteRoomHistory", .delete, Self.one + "/history", .operate,
                OperationDocument(
                    "Deletes the publications of a room's history; offsets go on", responses: [.init(204, "Deleted")],
                    problems: [404])
            ) { call in
                try await self.withBroker(call) { (room) async throws(RoomBrokerError) in
                    try await self.rooms.removeHistory(of: room)
                }
                return .noContent
            },
            Operation(
                "deletePublication", .delete,
                Self.one.appending("/history/{offset}", .init("The publication's offset.", example: "42")), .operate,
                OperationDocument(
                    "Deletes one publication of a room's history", responses: [.init(204, "Deleted")],
                    problems: [404])
            ) { try await self.deletePublication($0) },
            Operation("followRoom", .get, Self.one + "/events", .operate, Self.followDocument) {
                try await self.follow($0)
            },
        ]
    }

    // MARK: Publishing

    private static let publishDocument = OperationDocument(
        "Publishes a message in a room, whatever its policy permits clients",
        body: [.json(RoomPublish.self)], isBodyRequired: true,
        responses: [.init(200, "Published", .json(RoomPosition.self))], problems: [404])

    private static let broadcastDocument = OperationDocument(
        "Publishes the same message in several rooms",
        body: [.json(RoomBroadcast.self)], isBodyRequired: true,
        responses: [.init(200, "The result in each room", .json(RoomBroadcastAnswer.self))])

    private func publish(_ call: ControlCall) async throws -> Response {
        let body = try await call.jsonBytes()
        let request = try JSONBody.decode(RoomPublish.self, from: body)
        let data = try RoomPublisher.payload(request.data, request.b64data, in: body)
        do throws(RoomPublisher.Refusal) {
            let position = try await self.publisher.publish(
                Publication(data, tags: RoomPublisher.tags(request.tags)), in: Self.name(call),
                skipsHistory: request.skipHistory ?? false, idempotencyKey: request.idempotencyKey)
            return .json(
                RoomPosition {
                    $0.offset = position.epoch.isEmpty ? nil : position.offset
                    $0.epoch = position.epoch.isEmpty ? nil : position.epoch
                })
        } catch {
            if case .tooLarge = error { throw error.problem.at(pointer: "/data") }
            throw error.problem
        }
    }

    private func broadcast(_ call: ControlCall) async throws -> Response {
        let body = try await call.jsonBytes()
        let request = try JSONBody.decode(RoomBroadcast.self, from: body)
        guard (1...RoomBroadcast.roomLimit).contains(request.rooms.count) else {
            throw ControlProblem.invalid("/rooms", "rooms must name 1 to \(RoomBroadcast.roomLimit) rooms.")
        }
        let data = try RoomPublisher.payload(request.data, request.b64data, in: body)
        let publication = Publication(data, tags: RoomPublisher.tags(request.tags))
        var results: [RoomBroadcastResult] = []
        for room in request.rooms {
            var result = RoomBroadcastResult { $0.room = room }
            do throws(RoomPublisher.Refusal) {
                let position = try await self.publisher.publish(
                    publication, in: room, skipsHistory: request.skipHistory ?? false,
                    idempotencyKey: request.idempotencyKey)
                if !position.epoch.isEmpty { (result.offset, result.epoch) = (position.offset, position.epoch) }
            } catch {
                (result.problem, result.detail) = (error.problem.code, error.problem.detail)
            }
            results.append(result)
        }
        return .json(RoomBroadcastAnswer { $0.items = results })
    }

    // MARK: History

    private static let historyDocument = OperationDocument(
        "Gets publications of a room's history page by page, the oldest first; a page ends after 4 MiB of data",
        parameters: [
            "limit": .integer(1...Self.maximumLimit, "Publications per page. Default: 100.", example: 100),
            "since": [
                "type": "integer", "minimum": 0, "example": 17,
                "description": "Publications after this offset; with reverse, before it.",
            ],
            "epoch": .text(
                "The stream to which since belongs; 410 if the room has another. Default: the room's.",
                example: "5b1c8fa0d2e94c37"),
            "reverse": .boolean("The newest first. Default: false."),
        ],
        responses: [.init(200, "A page", .json(RoomHistoryPage.self), headers: .nextPage)], problems: [404, 409, 410])

    private func history(_ call: ControlCall) async throws -> Response {
        let limit = try call.query.integer("limit", in: 1...Self.maximumLimit) ?? Self.defaultLimit
        let since = try Self.offset(call.query, "since")
        let epoch = try call.query.value("epoch")
        var request = Command.HistoryRequest()
        request.limit = limit + 1
        request.isReversed = try call.query.boolean("reverse") ?? false
        if !self.hub.isShared { self.hub.release(try self.acquire(call)) }
        try self.checkKeepsHistory(Self.name(call))
        let found = try await self.withBroker(call) { (room) async throws(RoomBrokerError) in
            if let since {
                let known = try await self.rooms.history(of: room, Command.HistoryRequest()).position.epoch
                request.since = StreamPosition(offset: since, epoch: epoch ?? known)
            }
            return try await self.rooms.history(of: room, request)
        }
        let page = Self.page(found.publications, limit: limit)
        let isCut = page.count < found.publications.count || found.isCut
        let next = isCut ? page.last.map { $0.offset } : nil
        let path = next.map { offset in
            call.query.nextPage(
                of: "\(Self.path(Self.name(call)))/history",
                [(name: "since", value: "\(offset)"), (name: "epoch", value: found.position.epoch)])
        }
        return .json(Self.body(page, found.position, next: path), headers: Self.link(path))
    }

    private func checkKeepsHistory(_ room: String) throws(ControlProblem) {
        guard let policy = self.hub.policy(of: room) else { throw RoomPublisher.Refusal.unknownRoom.problem }
        guard !policy.keepsHistory else { return }
        throw ControlProblem(409, "no-history", "The policy \(policy.name) has no history-size.")
    }

    private static func offset(_ query: Query, _ name: String) throws(ControlProblem) -> UInt64? {
        guard let text = try query.value(name) else { return nil }
        guard let offset = UInt64(text) else {
            throw ControlProblem.invalid(parameter: name, "\(name) must be the offset of a publication.")
        }
        return offset
    }

    /// As many publications as fit, at least one.
    private static func page(_ publications: [Publication], limit: Int) -> ArraySlice<Publication> {
        var bytes = 0
        let count = publications.prefix(limit).prefix { publication in
            defer { bytes += publication.data.bytes.count }
            return bytes < Self.pageBytes
        }.count
        return publications.prefix(count)
    }

    private static func body(
        _ publications: ArraySlice<Publication>, _ position: StreamPosition, next: String?
    ) -> [UInt8] {
        var text = JSONText(capacity: publications.reduce(256) { $0 + $1.data.bytes.count + 256 })
        text.beginObject()
        text.key("items")
        text.beginArray()
        for publication in publications { RoomWriter.write(publication, to: &text) }
        text.endArray()
        text.member("offset", position.offset)
        text.member("epoch", position.epoch)
        text.member("next", next)
        text.endObject()
        return text.bytes
    }

    private func deletePublication(_ call: ControlCall) async throws -> Response {
        let text = call.parameters["offset"] ?? ""
        let isDeleted = try await self.withBroker(call) { (room) async throws(RoomBrokerError) in
            guard let offset = UInt64(text), offset > 0 else { return false }
            return try await self.rooms.removePublication(of: room, offset: offset)
        }
        guard isDeleted else {
            throw ControlProblem(
                404, "unknown-publication", "The room's history has no publication \(text.prefix(64)).")
        }
        return .noContent
    }

    // MARK: Following

    private static let followDocument = OperationDocument(
        "Follows a room, as Server-Sent Events; their ids are positions from which a lost stream continues",
        parameters: [
            "after": .text("Begins after this position: EPOCH.OFFSET.", example: "5b1c8fa0d2e94c37.42"),
            "last": .integer(
                0...Self.maximumLimit, "Without a position: begins with this many publications. Default: 0.",
                example: 10),
            "heartbeatMs": .milliseconds(
                from: 10, to: 600_000, "Sends a comment after this time without an event. Default: 15000.",
                example: 15_000),
        ].merging(StreamBounds.parameters) { first, _ in first },
        headers: ["Last-Event-ID": "Position of the last event received."],
        responses: [
            .init(200, "Events", .events(of: RoomEvent.self, example: Examples.roomEventMessage))
        ], problems: [404, 409])

    private func follow(_ call: ControlCall) async throws -> Response {
        let name = Self.name(call)
        guard self.publisher.isValid(name), self.hub.policy(of: name) != nil else {
            throw RoomPublisher.Refusal.unknownRoom.problem
        }
        let heartbeat = try call.query.milliseconds("heartbeatMs") ?? Self.defaultHeartbeat
        guard (.milliseconds(10) ... .seconds(600)).contains(heartbeat) else {
            throw ControlProblem.invalid(parameter: "heartbeatMs", "heartbeatMs must be from 10 to 600000.")
        }
        let bounds = try StreamBounds(call.query)
        let position = try Self.position(call)
        let last = try call.query.integer("last", in: 0...Self.maximumLimit) ?? 0
        guard let follower = await self.rooms.follow(name, after: position, last: last) else {
            throw ControlProblem(409, "room-full", "The room has as many members as its policy allows (max-members).")
        }
        let stopping = self.context.stopping
        return try await EventStream.response(call) { writer, disconnect in
            let watches = [disconnect, stopping].map { event in
                Task { if await event.wait() { follower.stop() } }
            }
            defer {
                for watch in watches { watch.cancel() }
                follower.stop()
            }
            try await Self.write(follower, bounds, heartbeat, to: &writer)
        }
    }

    private static func write(
        _ follower: RoomFollower, _ bounds: StreamBounds, _ heartbeat: Duration, to writer: inout EventStream.Writer
    ) async throws {
        var count = 0
        while !bounds.isReached(count) {
            let limit = min(heartbeat, bounds.timeLeft ?? heartbeat)
            let events = try await Waiting.withTimeout(limit) { await follower.next() } ?? nil
            guard let events else {
                if follower.isOver { return }
                if !bounds.isReached(count) { try await writer.writeComment() }
                continue
            }
            let permitted = events.prefix(bounds.remaining(after: count))
            count += permitted.count
            try await writer.writeEvents(permitted) { event in
                let written = RoomWriter.event(event)
                return EventStream.Item(data: written.data, id: written.id, type: written.type)
            }
        }
    }

    /// `Last-Event-ID`, which a reconnecting client sends, or else `after`.
    private static func position(_ call: ControlCall) throws(ControlProblem) -> StreamPosition? {
        if let text = call.request.headers[.lastEventID], !text.isEmpty {
            guard let position = RoomWriter.position(text) else {
                throw ControlProblem(400, "invalid-header", "Last-Event-ID must be EPOCH.OFFSET.")
            }
            return position
        }
        guard let text = try call.query.value("after") else { return nil }
        guard let position = RoomWriter.position(text) else {
            throw ControlProblem.invalid(parameter: "after", "after must be EPOCH.OFFSET.")
        }
        return position
    }
}
