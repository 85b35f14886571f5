import Rooms
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Operations of the server on rooms and users, from outside the loops.
package struct RoomOperations: Sendable {
    /// Clients visited in one turn of a loop.
    private static let batch = 256

    package let hub: RoomHub
    let loopGateways: [LoopIsolated<LoopGateway>]

    /// Clients of the protocol: those of one user, or one of them.
    package struct ClientSelection: Sendable {
        package var user: String
        /// The only client that is meant; `nil` is all of the user's.
        package var client: String?
        /// Clients that are left alone.
        package var keeps: Set<String> = []

        package init(user: String, client: String? = nil) {
            self.user = user
            self.client = client
        }
    }

    /// Connections of these clients. Those of anonymous users are found by `client` only.
    package func entries(_ selection: ClientSelection) -> [UserRegistry.Entry] {
        let all: [UserRegistry.Entry]
        if let client = selection.client {
            all = self.hub.users.entry(client: client).map { [$0] } ?? []
        } else {
            all = selection.user.isEmpty ? [] : self.hub.users.entries(user: selection.user)
        }
        return all.filter { $0.user == selection.user && !selection.keeps.contains($0.client) }
    }

    // MARK: Clients

    /// Ends the connections. Clients connect again unless the code says not to.
    /// - Returns: how many connections.
    @discardableResult
    package func disconnect(_ selection: ClientSelection, _ disconnect: Disconnect) async -> Int {
        await self.visit(selection) {
            $0.disconnect(disconnect)
            return nil
        }.count
    }

    /// Removes the clients from a room; their connections stay.
    /// - Returns: how many clients were members.
    @discardableResult
    package func unsubscribe(_ selection: ClientSelection, from room: String) async -> Int {
        await self.visitMembers(of: room, where: Self.matches(selection)) { $0.removeFromRoom() }
    }

    private static func matches(_ selection: ClientSelection) -> @Sendable (ClientInfo) -> Bool {
        { info in
            info.user == selection.user && (selection.client ?? info.client) == info.client
                && !selection.keeps.contains(info.client)
        }
    }

    /// Makes the clients members of a room.
    /// - Returns: how many clients there are, and why one of them is not a member.
    package func subscribe(
        _ selection: ClientSelection, _ grant: SubscriptionGrant, recovering position: StreamPosition? = nil
    ) async -> (count: Int, error: CommandError?) {
        let errors = await self.visit(selection) { $0.subscribe(grant, recovering: position) }
        return (errors.count, errors.lazy.compactMap(\.self).first)
    }

    /// Changes when the connections expire.
    /// - Parameter expiry: seconds since 1970; `nil` is never.
    package func refresh(_ selection: ClientSelection, expiry: UInt64?, isExpired: Bool) async -> Int {
        await self.visit(selection) {
            $0.refresh(expiry: expiry, isExpired: isExpired)
            return nil
        }.count
    }

    /// Sends a message outside of all rooms.
    package func send(_ data: Payload, to selection: ClientSelection) async -> Int {
        await self.visit(selection) {
            $0.send(data)
            return nil
        }.count
    }

    /// Rooms of a client, in the order of their names; empty if it is gone.
    package func rooms(of entry: UserRegistry.Entry) async -> [String] {
        guard self.loopGateways.indices.contains(entry.loop) else { return [] }
        return await self.loopGateways[entry.loop].perform { $0.rooms.sessions[entry.client]?.channels ?? [] }
    }

    /// Runs `body` with the clients that are still connected.
    private func visit(
        _ selection: ClientSelection, _ body: @escaping @Sendable (RoomSession) -> CommandError?
    ) async -> [CommandError?] {
        var results: [CommandError?] = []
        let byLoop = Dictionary(grouping: self.entries(selection), by: \.loop)
        for (loop, entries) in byLoop.sorted(by: { $0.key < $1.key }) where self.loopGateways.indices.contains(loop) {
            for start in stride(from: 0, to: entries.count, by: Self.batch) {
                let clients = entries[start..<min(start + Self.batch, entries.count)].map(\.client)
                results += await self.loopGateways[loop].perform { gateway in
                    clients.compactMap { gateway.rooms.sessions[$0] }.map(body)
                }
            }
        }
        return results
    }

    // MARK: Members

    /// A member of a room.
    package struct Member: Sendable {
        package let position: MemberPosition
        /// Names neither user nor client for a member that the room does not list.
        package let info: ClientInfo
        /// Number of the connection in the REST interface; `nil` for a member without one.
        package let connection: UInt64?
    }

    /// Place in the list of a room's members, which never changes while the member stays.
    package struct MemberPosition: Sendable, Hashable {
        package let loop: Int
        package let number: UInt64

        package init(loop: Int, number: UInt64) {
            self.loop = loop
            self.number = number
        }
    }

    /// Members on this gateway, whether or not the room's policy lists them for clients.
    /// - Returns: up to `limit` members after `position`.
    package func members(of room: String, after position: MemberPosition? = nil, limit: Int) async -> [Member] {
        var members: [Member] = []
        for (loop, loopGateway) in self.loopGateways.enumerated() where loop >= position?.loop ?? 0 {
            guard members.count < limit else { break }
            let last = loop == position?.loop ? position?.number : nil
            let rest = limit - members.count
            members += await loopGateway.perform { gateway in
                let subscriptions = gateway.rooms.subscriptions(in: room)
                let numbers = subscriptions.filter { number, subscription in
                    !(subscription.subscriber is FollowingMember) && last.map { number > $0 } ?? true
                }.keys.sorted()
                return numbers.prefix(rest).compactMap { number in
                    subscriptions[number].map {
                        Member(
                            position: MemberPosition(loop: loop, number: number), info: $0.info ?? ClientInfo(),
                            connection: $0.connection)
                    }
                }
            }
        }
        return members
    }

    /// Removes members from a room: of one user, or all. Clients of the protocol keep their connections; for others the
    /// connection is the membership, and ends.
    /// - Returns: how many members.
    package func kick(_ selection: ClientSelection?, from room: String) async -> Int {
        await self.visitMembers(of: room, where: Self.matches(any: selection)) { $0.removeFromRoom() }
    }

    /// Ends the connections of a room's members: of one user, or all.
    /// - Returns: how many connections.
    package func disconnectMembers(
        of room: String, _ selection: ClientSelection?, _ disconnect: Disconnect
    ) async -> Int {
        await self.visitMembers(of: room, where: Self.matches(any: selection)) { $0.disconnect(disconnect) }
    }

    private static func matches(any selection: ClientSelection?) -> @Sendable (ClientInfo) -> Bool {
        guard let selection else { return { _ in true } }
        return Self.matches(selection)
    }

    /// - Parameter body: returns whether it concerned the member.
    private func visitMembers(
        of room: String, where matches: @escaping @Sendable (ClientInfo) -> Bool,
        _ body: @escaping @Sendable (RoomSubscription) -> Bool
    ) async -> Int {
        var count = 0
        for loopGateway in self.loopGateways {
            let numbers = await loopGateway.perform { gateway in
                gateway.rooms.subscriptions(in: room).filter { matches($0.value.info ?? ClientInfo()) }.keys.sorted()
            }
            for start in stride(from: 0, to: numbers.count, by: Self.batch) {
                let batch = numbers[start..<min(start + Self.batch, numbers.count)]
                count += await loopGateway.perform { gateway in
                    batch.count { gateway.rooms.subscriptions(in: room)[$0].map(body) ?? false }
                }
            }
        }
        return count
    }

    // MARK: Restrictions

    /// Bans a user from a room or mutes it there, replacing a former restriction of the same kind.
    /// - Parameter room: `nil` is every room.
    /// - Returns: `false` if there are too many restrictions already.
    package func restrict(_ kind: Moderation.Kind, user: String, in room: String?, for duration: Duration) -> Bool {
        let now = self.hub.now
        return self.hub.moderation.add(
            Moderation.Entry(kind: kind, user: user, room: room), until: now + duration, now: now)
    }

    /// - Returns: whether there was such a restriction.
    package func lift(_ kind: Moderation.Kind, user: String, in room: String?) -> Bool {
        self.hub.moderation.remove(Moderation.Entry(kind: kind, user: user, room: room))
    }

    /// Restrictions in force, in the order of the users' names.
    package var restrictions: [(entry: Moderation.Entry, remaining: Duration)] {
        self.hub.moderation.all(now: self.hub.now)
    }

    /// Removes the clients from all their rooms; their connections stay, except those without a protocol.
    /// - Returns: how many connections.
    package func unsubscribeFromAll(_ selection: ClientSelection) async -> Int {
        let count = await self.visit(selection) { session in
            for channel in session.channels { session.unsubscribe(channel, .server) }
            return nil
        }.count
        return count + (await self.removePlainMembers(selection))
    }

    /// Removes clients without a protocol, which the registry of users does not have.
    /// - Returns: how many.
    private func removePlainMembers(_ selection: ClientSelection) async -> Int {
        // Anonymous users are found by `client` only.
        guard !selection.user.isEmpty || selection.client != nil else { return 0 }
        let matches = Self.matches(selection)
        var count = 0
        for loopGateway in self.loopGateways {
            let names = await loopGateway.perform { Array($0.rooms.rooms.keys) }
            for start in stride(from: 0, to: names.count, by: Self.batch) {
                let batch = names[start..<min(start + Self.batch, names.count)]
                count += await loopGateway.perform { gateway in
                    let members = batch.flatMap { name in
                        gateway.rooms.subscriptions(in: name).values.filter { member in
                            !(member.subscriber is RoomSession) && member.info.map(matches) ?? false
                        }
                    }
                    return members.count { $0.removeFromRoom() }
                }
            }
        }
        return count
    }

    // MARK: Following

    /// Follows the publications of a room from outside the loops.
    /// - Parameters:
    ///   - position: publications after it come first; `nil` begins with the next one.
    ///   - last: without a position, this many of the newest publications come first, at most 10 000.
    /// - Returns: `nil` if the room has as many members as its policy allows.
    package func follow(_ room: String, after position: StreamPosition? = nil, last: Int = 0) async -> RoomFollower? {
        // Followers of one room share a loop, which takes the room's messages once.
        let index = self.hub.home(of: room)
        guard self.loopGateways.indices.contains(index) else { return nil }
        let queue = FollowerQueue()
        let isMember = await self.loopGateways[index].request { gateway, complete in
            FollowingMember(queue, rooms: gateway.rooms).join(room, after: position, last: last, complete)
        }
        return isMember ? RoomFollower(queue) : nil
    }

    // MARK: Publications

    package enum PublishError: Error, Equatable {
        case unknownRoom
        /// The loops are behind with the messages of others.
        case busy
        case broker(RoomBrokerError)
    }

    /// Publishes for the server: permissions do not apply.
    package func publish(
        _ publication: Publication, in name: String, skipsHistory: Bool = false, idempotencyKey: String? = nil
    ) async throws(PublishError) -> StreamPosition {
        guard self.hub.policy(of: name) != nil else { throw .unknownRoom }
        guard !self.hub.isBehind else { throw .busy }
        let result = await self.onHome(of: name) { gateway, complete in
            gateway.publish(
                publication, in: name, skipsHistory: skipsHistory, idempotencyKey: idempotencyKey, complete)
        }
        do { return try result.get() } catch { throw .broker(error) }
    }

    /// The clients in the room on all nodes, in the order of their identifiers.
    package func presence(of room: String) async throws(RoomBrokerError) -> [ClientInfo] {
        try await self.onHome(of: room) { $0.presence(of: room, $1) }.get()
    }

    package func presenceCounts(of room: String) async throws(RoomBrokerError) -> RoomPresenceCounts {
        try await self.onHome(of: room) { $0.presenceCounts(of: room, $1) }.get()
    }

    package func history(
        of room: String, _ request: Command.HistoryRequest
    ) async throws(RoomBrokerError) -> RoomHistoryPage {
        try await self.onHome(of: room) { $0.history(of: room, request, $1) }.get()
    }

    package func removeHistory(of room: String) async throws(RoomBrokerError) {
        try await self.onHome(of: room) { $0.removeHistory(of: room, $1) }.get()
    }

    /// - Returns: whether the publication was there.
    package func removePublication(of room: String, offset: UInt64) async throws(RoomBrokerError) -> Bool {
        try await self.onHome(of: room) { $0.removePublication(of: room, offset: offset, $1) }.get()
    }

    /// Asks the room's loop.
    private func onHome<Value: Sendable>(
        of room: String,
        _ body: @escaping @Sendable (LoopGateway, @escaping RoomCompletion<Value>) -> Void
    ) async -> Result<Value, RoomBrokerError> {
        let index = self.hub.home(of: room)
        guard self.loopGateways.indices.contains(index) else { return .failure(.away) }
        return await self.loopGateways[index].request(body)
    }
}

extension Gateway {
    package var rooms: RoomOperations { RoomOperations(hub: self.shared.hub, loopGateways: self.loopGateways) }
}

extension LoopRooms {
    fileprivate func subscriptions(in room: String) -> [UInt64: RoomSubscription] {
        self.rooms[room]?.subscriptions ?? [:]
    }
}

extension RoomSubscription {
    fileprivate var connection: UInt64? {
        switch self.subscriber {
        case let session as RoomSession: session.number
        case is PlainWebSocketMember, is PlainStreamMember:
            self.info.flatMap { RoomHub.connection(ofPlainClient: $0.client) }
        default: nil
        }
    }

    fileprivate func removeFromRoom() -> Bool {
        switch self.subscriber {
        case let session as RoomSession: session.unsubscribe(self.room.name, .server)
        case let member as PlainWebSocketMember:
            member.session?.recordTermination(
                .abnormalClose(closeCode: CloseCode.policyViolation.rawValue), by: .operator)
            member.end(.policyViolation, "removed from the room")
        case let member as PlainStreamMember:
            member.leave()
            member.task?.reset()
        default: return false
        }
        return true
    }

    fileprivate func disconnect(_ disconnect: Disconnect) -> Bool {
        switch self.subscriber {
        case let session as RoomSession: session.disconnect(disconnect)
        case let member as PlainWebSocketMember:
            member.session?.recordTermination(.abnormalClose(closeCode: disconnect.code), by: .operator)
            member.end(CloseCode(rawValue: disconnect.code), disconnect.reason)
        case let member as PlainStreamMember:
            member.leave()
            member.task?.reset()
        default: return false
        }
        return true
    }
}
