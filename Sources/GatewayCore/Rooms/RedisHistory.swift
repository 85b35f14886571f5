import Cluster
import DequeModule
import RedisEngine
import Rooms
import StreamTransport

/// Reads and changes the streams of rooms in Redis.
final class RedisHistory {
    /// Cost of one answer to a request for a history, in bytes: above it, the answer ends.
    private static let answerLimit = 16 << 20
    /// Pages that are read from one server at the same time, and their bytes, unless it is one. Redis ends a connection
    /// whose replies wait for it with more than 32 MiB (`client-output-buffer-limit pubsub`), and other commands come
    /// behind them.
    private static let readingLimit = (count: 16, bytes: 8 << 20)
    /// Time that a stream's epoch outlasts its publications.
    private static let metaTime: Duration = .seconds(60)

    /// One stream that is being read.
    private final class Reading {
        let keys: RoomKeys
        let policy: RoomPolicy
        var pages: StreamReading
        let server: Server
        let isWanted: () -> Bool
        let complete: (Result<StreamReading.Contents, RoomBrokerError>) -> Void

        init(
            _ keys: RoomKeys, _ policy: RoomPolicy, _ pages: StreamReading, from server: Server,
            isWanted: @escaping () -> Bool,
            _ complete: @escaping (Result<StreamReading.Contents, RoomBrokerError>) -> Void
        ) {
            self.keys = keys
            self.policy = policy
            self.pages = pages
            self.server = server
            self.isWanted = isWanted
            self.complete = complete
        }
    }

    /// Readings from one server: one of a Redis Cluster that does not answer holds up its own rooms alone.
    private final class Server {
        var readingCount = 0
        var readingBytes = 0
        /// Pages that are read when others have been: those of histories that rooms need, then those that clients asked for.
        var waiting: [Deque<(range: StreamRange, reading: Reading)>] = [[], []]
        var isBeginning = false
        /// When a page of a history that a room needs was read last.
        var lastPage: Duration?
    }

    private let client: RedisClient
    private let cluster: RoomCluster
    private let hub: RoomHub
    private let run: RedisRun
    private var servers: [RedisEndpoint?: Server] = [:]

    init(_ client: RedisClient, _ cluster: RoomCluster, _ hub: RoomHub, _ run: RedisRun) {
        self.client = client
        self.cluster = cluster
        self.hub = hub
        self.run = run
    }

    func newEpoch() -> RedisArgument { .text(RoomHub.text(self.hub.randomWords(1))) }

    /// How long Redis remembers the epoch and the newest offset of a stream after its last use.
    static func metaTime(_ policy: RoomPolicy) -> RedisArgument {
        .number((max(policy.historyTime, Self.metaTime) + Self.metaTime).wholeMilliseconds)
    }

    // MARK: Reading

    /// Reads the newest publications, as many as the policy keeps. What is published during the reading is part of it.
    /// - Parameters:
    ///   - position: only what is newer is read; `nil` for all.
    ///   - isWanted: asked before each page. If not, it fails.
    func load(
        _ keys: RoomKeys, _ policy: RoomPolicy, after position: StreamPosition?, while isWanted: @escaping () -> Bool,
        _ complete: @escaping (Result<SharedRoom.Snapshot, RoomBrokerError>) -> Void
    ) {
        let range = StreamRange(
            after: position?.offset ?? 0, limit: policy.historySize, epoch: position?.epoch ?? "")
        let pages = StreamReading(range, byteLimit: policy.historyBytes, follows: true)
        let server = self.server(of: keys)
        let reading = Reading(keys, policy, pages, from: server, isWanted: isWanted) { result in
            complete(result.map { Self.snapshot($0, isWhole: position == nil) })
        }
        server.waiting[0].append((range, reading))
        self.beginWaiting(at: server)
    }

    /// Answers a request for a part of the history.
    /// - Parameter isWanted: asked before each page. If not, it fails.
    func page(
        _ keys: RoomKeys, _ policy: RoomPolicy, _ request: Command.HistoryRequest, while isWanted: @escaping () -> Bool,
        _ complete: @escaping (Result<RoomHistoryPage, RoomBrokerError>) -> Void
    ) {
        let range = StreamRange(request)
        let pages = StreamReading(range, byteLimit: Self.answerLimit, follows: false)
        let server = self.server(of: keys)
        let reading = Reading(keys, policy, pages, from: server, isWanted: isWanted) { result in
            complete(result.flatMap { Self.page($0, request) })
        }
        server.waiting[1].append((range, reading))
        self.beginWaiting(at: server)
    }

    /// When the server of these keys answered last with a part of a history that a room needs; `nil` if it did not.
    func lastPage(of keys: RoomKeys) -> Duration? { self.servers[self.client.server(ofKey: keys.stream)]?.lastPage }

    private func server(of keys: RoomKeys) -> Server {
        let endpoint = self.client.server(ofKey: keys.stream)
        let server = self.servers[endpoint] ?? Server()
        self.servers[endpoint] = server
        return server
    }

    /// Most bytes of a page: one publication may be larger than the others together.
    private func cost(_ reading: Reading) -> Int { max(self.cluster.historyPage, reading.policy.maximumMessageSize) }

    private func nextWaiting(at server: Server) -> (range: StreamRange, reading: Reading)? {
        guard let index = server.waiting.firstIndex(where: { !$0.isEmpty }), let next = server.waiting[index].first,
            server.readingCount < Self.readingLimit.count,
            server.readingCount == 0 || server.readingBytes + self.cost(next.reading) <= Self.readingLimit.bytes
        else { return nil }
        return server.waiting[index].removeFirst()
    }

    private func beginWaiting(at server: Server) {
        // One that fails at once ends before the next one begins.
        guard !server.isBeginning else { return }
        server.isBeginning = true
        while let (range, reading) = self.nextWaiting(at: server) {
            server.readingCount += 1
            server.readingBytes += self.cost(reading)
            self.read(range, reading)
        }
        server.isBeginning = false
    }

    private func finish(_ reading: Reading, _ result: Result<StreamReading.Contents, RoomBrokerError>) {
        self.endPage(reading)
        reading.complete(result)
        self.beginWaiting(at: reading.server)
    }

    private func endPage(_ reading: Reading) {
        reading.server.readingCount -= 1
        reading.server.readingBytes -= self.cost(reading)
    }

    private func read(_ range: StreamRange, _ reading: Reading) {
        guard reading.isWanted() else { return self.finish(reading, .failure(.away)) }
        let (keys, node) = (reading.keys, self.cluster.node)
        let arguments: [RedisArgument] = [
            .text(range.lowest), .text(range.highest), .number(range.limit), .number(range.isReversed ? 1 : 0),
            self.newEpoch(), Self.metaTime(reading.policy), .text(range.epoch),
        ]
        self.client.perform(
            RoomScripts.read, keys: [keys.meta, keys.stream],
            arguments: arguments + self.run.arguments + [.number(self.cluster.historyPage)]
        ) { [weak self] result in
            guard let self else { return reading.complete(.failure(.away)) }
            switch result.decoded({ try StreamPage($0, node: node) }) {
            case .success(let page): self.received(page, reading)
            case .failure(let error): self.finish(reading, .failure(error))
            }
        }
    }

    private func received(_ page: StreamPage, _ reading: Reading) {
        let isOfRoom = reading.pages.follows
        if isOfRoom { reading.server.lastPage = .nanoseconds(Int64(clamping: self.client.loop.now.nanoseconds)) }
        switch reading.pages.received(page) {
        case .read(let range):
            self.endPage(reading)
            // A room opens when its history is complete, and many that are begun take much memory. Those that clients asked
            // for take turns.
            if isOfRoom {
                reading.server.waiting[0].prepend((range, reading))
            } else {
                reading.server.waiting[1].append((range, reading))
            }
            self.beginWaiting(at: reading.server)
        case .finish(let contents): self.finish(reading, .success(contents))
        case .giveUp: self.finish(reading, .failure(.away))
        }
    }

    private static func snapshot(_ contents: StreamReading.Contents, isWhole: Bool) -> SharedRoom.Snapshot {
        var snapshot = SharedRoom.Snapshot(
            position: contents.position, publications: [], floor: contents.position.offset,
            removals: contents.removals, lasting: contents.lasting, epochStart: contents.epochStart, isWhole: isWhole)
        var mayMissFormer = true
        for entry in contents.entries {
            guard let publication = entry.publication else {
                // What another program, or a later version, wrote into the stream is left out.
                snapshot.floor = snapshot.position.offset
                mayMissFormer = true
                continue
            }
            if mayMissFormer { snapshot.floor = publication.publication.offset - 1 }
            mayMissFormer = false
            snapshot.publications.append(publication)
        }
        return snapshot
    }

    private static func page(
        _ contents: StreamReading.Contents, _ request: Command.HistoryRequest
    ) -> Result<RoomHistoryPage, RoomBrokerError> {
        let position = contents.position
        if let since = request.since, since.epoch != position.epoch, !(since.epoch.isEmpty && since.offset == 0) {
            return .failure(.unrecoverablePosition)
        }
        let publications = contents.entries.compactMap { $0.publication?.publication }
        return .success(
            RoomHistoryPage(
                publications: request.isReversed ? publications.reversed() : publications, position: position,
                isCut: contents.isCut))
    }

    // MARK: Changing

    /// Removes a publication, or with offset 0 all, and tells the nodes.
    /// - Parameter complete: with how many were there.
    func remove(
        _ offset: UInt64, _ content: RoomEnvelope.Content, _ keys: RoomKeys,
        _ complete: @escaping (Result<Int64, RoomBrokerError>) -> Void
    ) {
        let envelope = RoomEnvelope(content).encoded
        let arguments: [RedisArgument] = [
            .text("\(offset)"), .bytes(envelope), .bytes(keys.channel), .text(self.client.publishCommand),
        ]
        let announcement = RoomScripts.announcement(of: envelope, in: keys) { (try? $0.int()).map { $0 > 0 } ?? false }
        self.client.perform(
            RoomScripts.remove, keys: [keys.meta, keys.stream], arguments: arguments, announcement: announcement
        ) { complete($0.decoded { try $0.int() }) }
    }

    /// Begins another epoch, unless Redis has the publication at this position.
    func startNewEpoch(_ keys: RoomKeys, _ position: StreamPosition, _ complete: @escaping (Bool) -> Void) {
        let arguments: [RedisArgument] = [.text(position.epoch), .text("\(position.offset)"), self.newEpoch()]
        self.client.perform(RoomScripts.startNewEpoch, keys: [keys.meta], arguments: arguments) { result in
            if case .success = result { complete(true) } else { complete(false) }
        }
    }
}
