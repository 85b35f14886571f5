import Rooms

/// A user with connections to the rooms of this gateway.
package struct ConnectedUser: Sendable, Equatable {
    package let name: String
    package let connectionCount: Int
    /// Rooms of these connections, in the order of their names.
    package fileprivate(set) var rooms: [String] = []
    package fileprivate(set) var hasMoreRooms = false
}

/// Selects users, in the order of their names.
package struct UserSelection: Sendable {
    /// Longest name that is listed, in bytes: in a path or a query it has up to three times as many.
    package static let nameLimit = 4096

    package var pattern: RoomPattern?
    /// Only connections that are in this room.
    package var room: String?
    /// Only users whose names come after this one.
    package var lastName: String?

    package init(pattern: RoomPattern?, room: String?, after lastName: String?) {
        (self.pattern, self.room, self.lastName) = (pattern, room, lastName)
    }

    fileprivate func includes(_ name: String) -> Bool {
        name.utf8.count <= Self.nameLimit && self.lastName.map { name > $0 } ?? true
            && self.pattern?.matches(name) ?? true
    }
}

extension RoomOperations {
    /// Clients visited in one turn of a loop.
    private static let clientBatch = 256

    /// Users on this gateway. Anonymous users, and clients without a protocol, are not among them.
    /// - Parameters:
    ///   - limit: users at most.
    ///   - roomLimit: rooms of each user at most; 0 does not ask for rooms.
    /// - Returns: the users, and whether there are more.
    package func users(
        _ selection: UserSelection, limit: Int, roomLimit: Int
    ) async -> (users: [ConnectedUser], hasMore: Bool) {
        var selection = selection
        while true {
            let (names, clients) = await self.userNames(selection)
            let entries = names.prefix(limit).flatMap { name in
                self.hub.users.entries(user: name).filter { clients?[name]?.contains($0.client) ?? true }
            }
            // All users of a page may have disconnected meanwhile.
            guard entries.isEmpty, names.count > limit else {
                let rooms = roomLimit > 0 ? await self.rooms(of: entries, limit: roomLimit + 1) : [:]
                let counts = Dictionary(entries.map { ($0.user, 1) }, uniquingKeysWith: +)
                let users = names.prefix(limit).compactMap { name in
                    counts[name].map { count in
                        let found = rooms[name] ?? []
                        return ConnectedUser(
                            name: name, connectionCount: count, rooms: Array(found.prefix(roomLimit)),
                            hasMoreRooms: found.count > roomLimit)
                    }
                }
                return (users, names.count > limit)
            }
            selection.lastName = names[limit - 1]
        }
    }

    /// - Returns: names in their order, and for a selection by room the clients that are in it by user.
    private func userNames(_ selection: UserSelection) async -> (names: [String], clients: [String: Set<String>]?) {
        guard let room = selection.room else {
            return (self.hub.users.names.filter(selection.includes).sorted(), nil)
        }
        var clients: [String: Set<String>] = [:]
        for loopGateway in self.loopGateways {
            let found = await loopGateway.perform { gateway in
                let members = gateway.rooms.rooms[room]?.subscriptions ?? [:]
                return members.values.compactMap { ($0.subscriber as? RoomSession)?.identity }
            }
            for (user, client) in found where !user.isEmpty && selection.includes(user) {
                clients[user, default: []].insert(client)
            }
        }
        return (clients.keys.sorted(), clients)
    }

    /// The first rooms of each user, in the order of their names.
    private func rooms(of entries: [UserRegistry.Entry], limit: Int) async -> [String: [String]] {
        var rooms: [String: [String]] = [:]
        for (loop, clients) in Dictionary(grouping: entries, by: \.loop) where self.loopGateways.indices.contains(loop)
        {
            for start in stride(from: 0, to: clients.count, by: Self.clientBatch) {
                let batch = clients[start..<min(start + Self.clientBatch, clients.count)]
                let found = await self.loopGateways[loop].perform { gateway in
                    batch.map { gateway.rooms.sessions[$0.client]?.channels.prefix(limit) ?? [] }
                }
                for (client, channels) in zip(batch, found) {
                    let all = Set(rooms[client.user] ?? []).union(channels)
                    rooms[client.user] = Array(all.sorted().prefix(limit))
                }
            }
        }
        return rooms
    }
}
