import Cluster
import RedisEngine
import Rooms

/// Lists clients in the rooms of a cluster, and counts the connections of its users. Entries expire unless their node renews
/// them.
final class RedisPresence {
    /// Clients that one command lists.
    private static let batch = 64

    private let client: RedisClient
    private let cluster: RoomCluster
    /// Clients of users whose connections are limited.
    private var registered: [String: Set<String>] = [:]

    init(_ client: RedisClient, _ cluster: RoomCluster) {
        self.client = client
        self.cluster = cluster
    }

    private var time: RedisArgument { .number(self.cluster.presenceTime.wholeMilliseconds) }

    // MARK: Rooms

    /// Lists clients, or renews them. If it fails, the next renewal lists them.
    /// - Parameters:
    ///   - envelope: a message that the room's members get; empty for none.
    ///   - complete: called for each command with its clients, up to 64, also if it failed.
    func list(
        _ clients: [ClientInfo], in keys: RoomKeys, telling envelope: [UInt8] = [],
        _ complete: @escaping (ArraySlice<ClientInfo>) -> Void
    ) {
        var start = 0
        repeat {
            let end = min(start + Self.batch, clients.count)
            let isFirst = start == 0
            if end > start || !envelope.isEmpty {
                self.list(clients[start..<end], keys, isFirst ? envelope : [], complete)
            }
            start = end
        } while start < clients.count
    }

    private func list(
        _ clients: ArraySlice<ClientInfo>, _ keys: RoomKeys, _ envelope: [UInt8],
        _ complete: @escaping (ArraySlice<ClientInfo>) -> Void
    ) {
        var arguments: [RedisArgument] = [
            self.time, .bytes(envelope), .bytes(keys.channel), .text(self.client.publishCommand),
        ]
        for info in clients {
            arguments.append(.text(info.client))
            arguments.append(.bytes(RoomEnvelope.encoded(info)))
        }
        self.client.perform(
            RoomScripts.enter, keys: [keys.presence, keys.presenceExpiry], arguments: arguments
        ) { _ in complete(clients) }
    }

    /// Without Redis, the client expires.
    func remove(_ client: String, in keys: RoomKeys, telling envelope: [UInt8]) {
        let arguments: [RedisArgument] = [
            .text(client), .bytes(envelope), .bytes(keys.channel), .text(self.client.publishCommand),
        ]
        self.client.perform(
            RoomScripts.leave, keys: [keys.presence, keys.presenceExpiry], arguments: arguments
        ) { _ in }
    }

    /// - Parameter complete: with the clients in the order of their identifiers.
    func clients(in keys: RoomKeys, _ complete: @escaping (Result<[ClientInfo], RoomBrokerError>) -> Void) {
        self.client.perform(RoomScripts.list, keys: [keys.presence, keys.presenceExpiry], arguments: []) { result in
            complete(
                result.decoded { reply in
                    try reply.array().map { try RoomEnvelope.info(try $0.bytes()) }.sorted { $0.client < $1.client }
                })
        }
    }

    // MARK: Users

    /// - Parameter complete: with whether the user may have one more connection. Without Redis it may: the limit of this
    ///   node holds.
    func register(client: String, user: String, limit: Int, _ complete: @escaping (Bool) -> Void) {
        self.registered[user, default: []].insert(client)
        self.count([client], of: user, limit: limit) { complete((try? $0.get()) ?? true) }
    }

    private func count(
        _ clients: [String], of user: String, limit: Int,
        _ complete: @escaping (Result<Bool, RoomBrokerError>) -> Void
    ) {
        let arguments: [RedisArgument] = [.number(limit), self.time] + clients.map(RedisArgument.text)
        self.client.perform(
            RoomScripts.register, keys: [RoomKeys.user(user, prefix: self.cluster.prefix)], arguments: arguments
        ) { complete($0.decoded { try $0.int() == 1 }) }
    }

    func unregister(client: String, user: String) {
        guard self.registered[user]?.remove(client) != nil else { return }
        if self.registered[user]?.isEmpty == true { self.registered[user] = nil }
        let key = RoomKeys.user(user, prefix: self.cluster.prefix)
        self.client.perform(RedisCommand("ZREM", .bytes(key), .text(client)), key: key) { _ in }
    }

    /// Renews the connections of this loop. Those that are counted already are never refused.
    func renewUsers() {
        for (user, clients) in self.registered {
            self.count(Array(clients), of: user, limit: .max) { _ in }
        }
    }
}
