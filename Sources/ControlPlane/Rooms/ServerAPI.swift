import GatewayCore
import Rooms
import StreamTransport

/// Performs the methods of Centrifugo's server API.
struct ServerAPI: Sendable {
    enum Method: String, Sendable, CaseIterable {
        case publish, broadcast, subscribe, unsubscribe, disconnect, refresh, presence
        case presenceStats = "presence_stats"
        case history
        case historyRemove = "history_remove"
        case channels, info, rpc
    }

    /// An error within an answer.
    struct Failure: Error, Equatable {
        let code: UInt32
        let message: String

        init(_ error: CommandError, _ message: String? = nil) {
            self.init(code: error.code, message: message ?? error.message)
        }

        init(code: UInt32, message: String) {
            (self.code, self.message) = (code, message)
        }
    }

    /// A result is the text of a JSON object.
    typealias Answer = Result<[UInt8], Failure>

    /// Channels of one broadcast.
    private static let broadcastLimit = 1000
    /// Channels that `channels` lists.
    static let listLimit = 10_000
    /// Publications of one `history`, and their data in bytes.
    private static let historyLimit = 10_000
    private static let historyBytes = 16 << 20
    private static let tagLimit = 64
    /// Bytes of an idempotency key.
    private static let keyLimit = 255

    private let context: ControlContext
    private let node: String

    init(_ context: ControlContext) {
        self.context = context
        self.node = Machine.randomWords(2).map { String($0, radix: 16) }.joined()
    }

    var cluster: GatewayCluster? { self.context.cluster }
    private var hub: RoomHub { self.context.hub }
    private var rooms: RoomOperations { self.context.gateway.rooms }
    private var publisher: RoomPublisher { RoomPublisher(rooms: self.rooms) }

    // MARK: Answers

    /// `{"result":…}`, or the name of a batch's command instead of `result`; or `{"error":…}`.
    static func answer(_ answer: Answer, named name: String = "result") -> [UInt8] {
        Self.object { text in
            switch answer {
            case .success(let result):
                text.escapedKey(name)
                text.raw(result)
            case .failure(let failure):
                text.key("error")
                text.beginObject()
                text.member("code", failure.code)
                text.member("message", failure.message)
                text.endObject()
            }
        }
    }

    private static func object(_ write: (inout JSONText) -> Void) -> [UInt8] {
        var text = JSONText()
        text.beginObject()
        write(&text)
        text.endObject()
        return text.bytes
    }

    private static let empty = Array("{}".utf8)

    // MARK: Methods

    /// Performs a method on this node.
    func perform(_ method: Method, _ request: ServerAPIRequest) async -> Answer {
        if let name = request.invalidBase64 {
            return .failure(Failure(.badRequest, "bad request: \(name) is not base64"))
        }
        do throws(Failure) {
            switch method {
            case .publish: return .success(try await self.publish(request, in: request.channel))
            case .broadcast: return .success(try await self.broadcast(request))
            case .subscribe: try await self.subscribe(request)
            case .unsubscribe: try await self.unsubscribe(request)
            case .disconnect: try await self.disconnect(request)
            case .refresh: try await self.refresh(request)
            case .presence: return .success(try await self.presence(request))
            case .presenceStats: return .success(try await self.presenceStats(request))
            case .history: return .success(try await self.history(request))
            case .historyRemove: try await self.removeHistory(request)
            case .channels: return .success(try self.channels(request))
            case .info: return .success(self.info())
            case .rpc: throw Failure(.methodNotFound)
            }
            return .success(Self.empty)
        } catch {
            return .failure(error)
        }
    }

    private func publish(_ request: ServerAPIRequest, in channel: String) async throws(Failure) -> [UInt8] {
        guard let data = request.data, !data.isEmpty else { throw Failure(.badRequest, "bad request: data is missing") }
        guard request.tags.count <= Self.tagLimit else {
            throw Failure(.limitExceeded, "limit exceeded: more than \(Self.tagLimit) tags")
        }
        guard request.idempotencyKey.utf8.count <= Self.keyLimit else {
            throw Failure(.limitExceeded, "limit exceeded: an idempotency_key of more than \(Self.keyLimit) bytes")
        }
        do throws(RoomPublisher.Refusal) {
            let position = try await self.publisher.publish(
                Publication(data, tags: request.tags), in: channel, skipsHistory: request.skipsHistory,
                idempotencyKey: request.idempotencyKey.isEmpty ? nil : request.idempotencyKey)
            return Self.object { text in
                // A publication that skips the history has no position.
                guard !position.epoch.isEmpty, !request.skipsHistory else { return }
                text.member("offset", position.offset)
                text.member("epoch", position.epoch)
            }
        } catch {
            throw Failure(error.error)
        }
    }

    private func broadcast(_ request: ServerAPIRequest) async throws(Failure) -> [UInt8] {
        guard !request.channels.isEmpty else { throw Failure(.badRequest, "bad request: channels is missing") }
        guard request.channels.count <= Self.broadcastLimit else {
            throw Failure(.limitExceeded, "limit exceeded: more than \(Self.broadcastLimit) channels")
        }
        var answers: [[UInt8]] = []
        for channel in request.channels {
            do throws(Failure) {
                answers.append(Self.answer(.success(try await self.publish(request, in: channel))))
            } catch {
                answers.append(Self.answer(.failure(error)))
            }
        }
        return Self.object { text in
            text.key("responses")
            text.beginArray()
            for answer in answers { text.raw(answer) }
            text.endArray()
        }
    }

    /// The clients that a request names. Anonymous users have no name: their clients are named alone.
    private func selection(_ request: ServerAPIRequest) throws(Failure) -> RoomOperations.ClientSelection {
        guard !request.user.isEmpty || !request.client.isEmpty else {
            throw Failure(.badRequest, "bad request: user is missing")
        }
        var selection = RoomOperations.ClientSelection(
            user: request.user, client: request.client.isEmpty ? nil : request.client)
        // Sessions are not assigned, so no client has the one that is asked for.
        if !request.session.isEmpty { selection.client = "" }
        selection.keeps = Set(request.whitelist)
        return selection
    }

    private func checkChannel(_ request: ServerAPIRequest) throws(Failure) -> RoomPolicy {
        guard self.publisher.isValid(request.channel) else { throw Failure(.badRequest) }
        guard let policy = self.hub.policy(of: request.channel) else { throw Failure(.unknownChannel) }
        return policy
    }

    private func subscribe(_ request: ServerAPIRequest) async throws(Failure) {
        _ = try self.checkChannel(request)
        var grant = SubscriptionGrant(channel: request.channel)
        grant.info = request.info
        grant.data = request.data
        grant.expiry = request.expiry
        let error = await self.rooms.subscribe(try self.selection(request), grant, recovering: request.since).error
        if let error { throw Failure(error) }
    }

    private func unsubscribe(_ request: ServerAPIRequest) async throws(Failure) {
        let selection = try self.selection(request)
        if request.channel.isEmpty {
            _ = await self.rooms.unsubscribeFromAll(selection)
        } else {
            _ = try self.checkChannel(request)
            await self.rooms.unsubscribe(selection, from: request.channel)
        }
    }

    private func disconnect(_ request: ServerAPIRequest) async throws(Failure) {
        var disconnect = Disconnect.forceNoReconnect
        if let wanted = request.disconnect, wanted.code != 0 {
            guard (3000...4999).contains(wanted.code), wanted.reason.utf8.count <= 123 else {
                throw Failure(.badRequest, "bad request: a code is from 3000 to 4999, a reason at most 123 bytes")
            }
            disconnect = Disconnect(code: wanted.code, reason: wanted.reason)
        }
        await self.rooms.disconnect(try self.selection(request), disconnect)
    }

    private func refresh(_ request: ServerAPIRequest) async throws(Failure) {
        let selection = try self.selection(request)
        _ = await self.rooms.refresh(selection, expiry: request.expiry, isExpired: request.isExpired)
    }

    // MARK: Reading

    private func broker<Value>(_ body: () async throws(RoomBrokerError) -> Value) async throws(Failure) -> Value {
        do {
            return try await body()
        } catch {
            switch error {
            case .unrecoverablePosition: throw Failure(.unrecoverablePosition)
            case .tooManyRooms, .tooLarge: throw Failure(.limitExceeded)
            case .away, .uncertain, .refused: throw Failure(.internal)
            }
        }
    }

    private func presence(_ request: ServerAPIRequest) async throws(Failure) -> [UInt8] {
        guard try self.checkChannel(request).hasPresence else { throw Failure(.notAvailable) }
        let clients = try await self.broker { () async throws(RoomBrokerError) in
            try await self.rooms.presence(of: request.channel)
        }
        return Self.object { text in
            text.key("presence")
            text.beginObject()
            for client in clients {
                text.escapedKey(client.client)
                Self.write(client, to: &text)
            }
            text.endObject()
        }
    }

    private static func write(_ info: ClientInfo, to text: inout JSONText) {
        text.beginObject()
        text.member("client", info.client)
        text.member("user", info.user)
        for (key, payload) in [("conn_info" as JSONKey, info.connectionInfo), ("chan_info", info.channelInfo)] {
            guard let payload, !payload.isEmpty else { continue }
            text.key(key)
            text.raw(payload.content(in: .json))
        }
        text.endObject()
    }

    private func presenceStats(_ request: ServerAPIRequest) async throws(Failure) -> [UInt8] {
        guard try self.checkChannel(request).hasPresence else { throw Failure(.notAvailable) }
        let counts = try await self.broker { () async throws(RoomBrokerError) in
            try await self.rooms.presenceCounts(of: request.channel)
        }
        return Self.object { text in
            text.member("num_clients", counts.clients)
            text.member("num_users", counts.users)
        }
    }

    private func history(_ request: ServerAPIRequest) async throws(Failure) -> [UInt8] {
        guard try self.checkChannel(request).keepsHistory else { throw Failure(.notAvailable) }
        // There is nothing before the first publication.
        if request.isReversed, request.since?.offset == 0 { throw Failure(.badRequest) }
        var wanted = Command.HistoryRequest()
        wanted.limit = request.limit < 0 ? Self.historyLimit : min(request.limit, Self.historyLimit)
        wanted.since = request.since
        wanted.isReversed = request.isReversed
        let found = try await self.broker { () async throws(RoomBrokerError) in
            try await self.rooms.history(of: request.channel, wanted)
        }
        return Self.object { text in
            text.key("publications")
            text.beginArray()
            var bytes = 0
            for publication in found.publications where bytes < Self.historyBytes {
                Self.write(publication, to: &text)
                bytes += publication.data.bytes.count
            }
            text.endArray()
            text.member("offset", found.position.offset)
            text.member("epoch", found.position.epoch)
        }
    }

    private static func write(_ publication: Publication, to text: inout JSONText) {
        text.beginObject()
        text.key("data")
        text.raw(publication.data.content(in: .json))
        if let info = publication.info {
            text.key("info")
            Self.write(info, to: &text)
        }
        text.member("offset", publication.offset)
        text.member("tags", RoomWriter.tags(publication.tags))
        text.endObject()
    }

    private func removeHistory(_ request: ServerAPIRequest) async throws(Failure) {
        guard try self.checkChannel(request).keepsHistory else { throw Failure(.notAvailable) }
        try await self.broker { () async throws(RoomBrokerError) in
            try await self.rooms.removeHistory(of: request.channel)
        }
    }

    private func channels(_ request: ServerAPIRequest) throws(Failure) -> [UInt8] {
        let pattern = RoomPattern(request.pattern.isEmpty ? "*" : request.pattern)
        let now = self.hub.now
        let rooms = self.hub.rooms.lazy.filter { pattern.matches($0.name) }
            .map { (name: $0.name, members: $0.counts(now: now).members) }
            .filter { $0.members > 0 }.prefix(Self.listLimit + 1)
        let found = Array(rooms)
        guard found.count <= Self.listLimit else {
            throw Failure(.limitExceeded, "limit exceeded: more than \(Self.listLimit) channels; use a pattern")
        }
        return Self.object { text in
            text.key("channels")
            text.beginObject()
            for room in found {
                text.escapedKey(room.name)
                text.beginObject()
                text.member("num_clients", room.members)
                text.endObject()
            }
            text.endObject()
        }
    }

    private func info() -> [UInt8] {
        let now = self.hub.now
        let rooms = self.hub.rooms.map { $0.counts(now: now).members }.filter { $0 > 0 }
        let counts = self.hub.users.counts
        let uptime = (self.context.now.nanoseconds - self.context.anchor.instant.nanoseconds) / 1_000_000_000
        return Self.object { text in
            text.key("nodes")
            text.beginArray()
            text.beginObject()
            text.member("uid", self.node)
            text.member("name", self.context.node ?? "sluice")
            text.member("version", self.context.version)
            text.member("num_clients", counts.clients)
            text.member("num_users", counts.users)
            text.member("num_channels", rooms.count)
            text.member("num_subs", rooms.reduce(0, +))
            text.member("uptime", uptime)
            text.endObject()
            text.endArray()
        }
    }
}
