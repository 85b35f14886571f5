import Cluster
import DequeModule
import RedisEngine
import Rooms
import StreamTransport

/// Lists clients in the rooms of a cluster, and counts the connections of its users. Entries expire unless their node renews
/// them.
final class RedisPresence {
    private static let countLimit = 1 << 20

    private let client: RedisClient
    private let cluster: RoomCluster
    /// Rooms that are being read, by their keys, with callers for whom they are read again after that.
    private typealias Callers<Value> = [[UInt8]: [RoomCompletion<Value>]]

    private var listings: Callers<[ClientInfo]> = [:]
    private var countings: Callers<RoomPresenceCounts> = [:]
    /// Give callers their results. A large list takes milliseconds for each.
    private var answers: Deque<() -> Void> = []
    private var answersInNextTurn = false
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
    ///   - clients: each as `RoomEnvelope` encodes it.
    ///   - envelope: a message that the room's members get; empty for none.
    func list(
        _ clients: [(client: String, info: [UInt8])], in keys: RoomKeys, telling envelope: [UInt8] = [],
        _ complete: @escaping RedisCompletion
    ) {
        var arguments: [RedisArgument] = [
            self.time, .bytes(envelope), .bytes(keys.channel), .text(self.client.publishCommand),
        ]
        for (client, info) in clients { arguments += [.text(client), .bytes(info)] }
        self.client.perform(
            RoomScripts.enter, keys: [keys.presence, keys.presenceExpiry], arguments: arguments,
            announcement: RoomScripts.announcement(of: envelope, in: keys), complete)
    }

    /// Without Redis, the client expires.
    func remove(_ client: String, in keys: RoomKeys, telling envelope: [UInt8]) {
        let arguments: [RedisArgument] = [
            .text(client), .bytes(envelope), .bytes(keys.channel), .text(self.client.publishCommand),
        ]
        self.client.perform(
            RoomScripts.leave, keys: [keys.presence, keys.presenceExpiry], arguments: arguments,
            announcement: RoomScripts.announcement(of: envelope, in: keys)
        ) { _ in }
    }

    /// Sends a message to the members of a room without presence.
    func tell(_ envelope: [UInt8], in keys: RoomKeys) {
        self.client.publish(RoomScripts.message(envelope), on: keys.channel) { _ in }
    }

    /// - Parameter complete: with the clients in the order of their identifiers; `tooLarge` above the cluster's limit.
    func clients(in keys: RoomKeys, _ complete: @escaping RoomCompletion<[ClientInfo]>) {
        self.share(\.listings, of: keys, complete) { [self] in self.readClients(in: keys, $0) }
    }

    /// - Parameter complete: with how many there are; `tooLarge` above a million.
    func count(in keys: RoomKeys, _ complete: @escaping RoomCompletion<RoomPresenceCounts>) {
        self.share(\.countings, of: keys, complete) { [self] in self.readCounts(in: keys, $0) }
    }

    /// Reads a room for one caller after the other, or for several together: a large room takes much of Redis' time.
    private func share<Value>(
        _ waiting: ReferenceWritableKeyPath<RedisPresence, Callers<Value>>, of keys: RoomKeys,
        _ complete: @escaping RoomCompletion<Value>, _ read: @escaping (@escaping RoomCompletion<Value>) -> Void
    ) {
        guard self[keyPath: waiting][keys.presence] == nil else {
            // A read in progress may lack a client that the caller knows to be there.
            self[keyPath: waiting][keys.presence]?.append(complete)
            return
        }
        self.begin(waiting, of: keys, for: [complete], read)
    }

    private func begin<Value>(
        _ waiting: ReferenceWritableKeyPath<RedisPresence, Callers<Value>>, of keys: RoomKeys,
        for callers: [RoomCompletion<Value>], _ read: @escaping (@escaping RoomCompletion<Value>) -> Void
    ) {
        self[keyPath: waiting][keys.presence] = []
        read { [self] result in
            let later = self[keyPath: waiting].removeValue(forKey: keys.presence) ?? []
            if !later.isEmpty { self.begin(waiting, of: keys, for: later, read) }
            for caller in callers { self.answers.append { caller(result) } }
            if !self.answersInNextTurn { self.answer() }
        }
    }

    /// Calls as many callers as the turn's budget allows, at least one.
    private func answer() {
        repeat { self.answers.popFirst()?() } while !self.answers.isEmpty && !self.client.loop.budgetIsSpent
        self.answersInNextTurn = !self.answers.isEmpty
        if self.answersInNextTurn { self.client.loop.inNextTurn(self) }
    }

    private func readClients(in keys: RoomKeys, _ complete: @escaping RoomCompletion<[ClientInfo]>) {
        let limit = self.cluster.presenceLimit
        var clients: [String: ClientInfo] = [:]
        var size = 0
        self.read(keys) { page in
            for info in page where clients.updateValue(info, forKey: info.client) == nil { size += info.estimatedSize }
            return size <= limit
        } complete: { result in
            complete(result.map { clients.values.sorted { $0.client < $1.client } })
        }
    }

    private func readCounts(in keys: RoomKeys, _ complete: @escaping RoomCompletion<RoomPresenceCounts>) {
        // Hashes instead of texts, for rooms that are much larger than a list may be.
        var clients: Set<Int> = []
        var users: Set<Int> = []
        self.read(keys) { page in
            for info in page {
                clients.insert(info.client.hashValue)
                users.insert(info.user.hashValue)
            }
            return clients.count <= Self.countLimit
        } complete: { result in
            complete(result.map { RoomPresenceCounts(clients: clients.count, users: users.count) })
        }
    }

    /// Reads what Redis lists page by page. Clients that come or go meanwhile may be part of it.
    /// - Parameter add: takes a page, which may have clients of former ones; returns whether there may be more.
    private func read(
        _ keys: RoomKeys, from cursor: String = "0", _ add: @escaping ([ClientInfo]) -> Bool,
        complete: @escaping (Result<Void, RoomBrokerError>) -> Void
    ) {
        self.client.perform(
            RoomScripts.list, keys: [keys.presence, keys.presenceExpiry],
            arguments: [.text(cursor), .number(self.cluster.presencePage)]
        ) { [weak self] result in
            switch result.decoded(Self.page) {
            case .success(let page):
                guard let self else { return complete(.failure(.away)) }
                self.client.loop.spend(TurnBudget.frame * page.clients.count)
                guard add(page.clients) else { return complete(.failure(.tooLarge)) }
                guard page.next != "0" else { return complete(.success(())) }
                self.read(keys, from: page.next.isEmpty ? "0" : page.next, add, complete: complete)
            case .failure(let error): complete(.failure(error))
            }
        }
    }

    private static func page(_ reply: RedisValue) throws -> (next: String, clients: [ClientInfo]) {
        let parts = try reply.array()
        guard parts.count == 2 else { throw UnexpectedReply() }
        return (try parts[0].text(), try parts[1].array().map { try RoomEnvelope.info(try $0.bytes()) })
    }

    // MARK: Users

    /// - Parameter complete: with whether the user may have one more connection. Without Redis it may: the limit of this
    ///   node holds.
    func register(client: String, user: String, limit: Int, _ complete: @escaping (Bool) -> Void) {
        self.registered[user, default: []].insert(client)
        self.count([client], of: user, limit: limit) { result in
            complete((try? result.decoded { try $0.int() == 1 }.get()) ?? true)
        }
    }

    private func count(
        _ clients: some Sequence<String>, of user: String, limit: Int, _ complete: @escaping RedisCompletion
    ) {
        let arguments: [RedisArgument] = [.number(limit), self.time] + clients.map(RedisArgument.text)
        self.client.perform(
            RoomScripts.register, keys: [RoomKeys.user(user, prefix: self.cluster.prefix)], arguments: arguments,
            complete)
    }

    func unregister(client: String, user: String) {
        guard self.registered[user]?.remove(client) != nil else { return }
        if self.registered[user]?.isEmpty == true { self.registered[user] = nil }
        let key = RoomKeys.user(user, prefix: self.cluster.prefix)
        self.client.perform(RedisCommand("ZREM", .bytes(key), .text(client)), key: key) { _ in }
    }

    /// Users whose connections this loop has registered.
    var users: [String] { Array(self.registered.keys) }

    func clients(of user: String) -> Set<String> { self.registered[user] ?? [] }

    /// Renews connections of a user. Those that are counted already are never refused.
    func renew(_ clients: some Sequence<String>, of user: String, _ complete: @escaping RedisCompletion) {
        self.count(clients, of: user, limit: .max, complete)
    }
}

extension RedisPresence: TurnEndTarget {
    func turnEnded() {}
    func nextTurnBegan() { self.answer() }
}
