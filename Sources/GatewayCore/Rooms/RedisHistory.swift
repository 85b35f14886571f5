import Cluster
import DequeModule
import RedisEngine
import Rooms

/// Reads and changes the streams of rooms in Redis.
final class RedisHistory {
    /// Cost of one answer to a request for a history, in bytes: above it, the answer ends.
    private static let answerLimit = 16 << 20
    /// Pages that are read at the same time, and their bytes, unless it is one. Redis ends a connection whose replies wait
    /// for it with more than 32 MiB (`client-output-buffer-limit pubsub`), and other commands come behind them.
    private static let readingLimit = (count: 16, bytes: 8 << 20)
    /// Time that a stream's epoch outlasts its publications.
    private static let metaTime: Duration = .seconds(60)

    /// One stream that is being read.
    private final class Reading {
        let keys: RoomKeys
        let policy: RoomPolicy
        var pages: StreamReading
        let isWanted: () -> Bool
        let complete: (Result<StreamReading.Contents, RoomBrokerError>) -> Void

        init(
            _ keys: RoomKeys, _ policy: RoomPolicy, _ pages: StreamReading, isWanted: @escaping () -> Bool = { true },
            _ complete: @escaping (Result<StreamReading.Contents, RoomBrokerError>) -> Void
        ) {
            self.keys = keys
            self.policy = policy
            self.pages = pages
            self.isWanted = isWanted
            self.complete = complete
        }
    }

    private let client: RedisClient
    private let cluster: RoomCluster
    private let hub: RoomHub
    private let run: RedisRun
    private var readingCount = 0
    private var readingBytes = 0
    /// Pages that are read when others have been: those of histories that rooms need, then those that clients asked for.
    private var waiting: [Deque<(range: StreamRange, reading: Reading)>] = [[], []]
    private var isBeginning = false

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
        let reading = Reading(keys, policy, pages, isWanted: isWanted) { result in
            complete(result.map { Self.snapshot($0, isWhole: position == nil) })
        }
        self.begin(range, reading)
    }

    /// Answers a request for a part of the history.
    func page(
        _ keys: RoomKeys, _ policy: RoomPolicy, _ request: Command.HistoryRequest,
        _ complete: @escaping (Result<RoomHistoryPage, RoomBrokerError>) -> Void
    ) {
        let range = StreamRange(request)
        let pages = StreamReading(range, byteLimit: Self.answerLimit, follows: false)
        let reading = Reading(keys, policy, pages) { result in
            complete(result.flatMap { Self.page($0, request) })
        }
        self.begin(range, reading)
    }

    private func begin(_ range: StreamRange, _ reading: Reading) {
        self.waiting[reading.pages.follows ? 0 : 1].append((range, reading))
        self.beginWaiting()
    }

    /// Most bytes of a page: one publication may be larger than the others together.
    private func cost(_ reading: Reading) -> Int { max(self.cluster.historyPage, reading.policy.maximumMessageSize) }

    private func nextWaiting() -> (range: StreamRange, reading: Reading)? {
        guard let index = self.waiting.firstIndex(where: { !$0.isEmpty }), let next = self.waiting[index].first,
            self.readingCount < Self.readingLimit.count,
            self.readingCount == 0 || self.readingBytes + self.cost(next.reading) <= Self.readingLimit.bytes
        else { return nil }
        return self.waiting[index].removeFirst()
    }

    private func beginWaiting() {
        // One that fails at once ends before the next one begins.
        guard !self.isBeginning else { return }
        self.isBeginning = true
        while let (range, reading) = self.nextWaiting() {
            self.readingCount += 1
            self.readingBytes += self.cost(reading)
            self.read(range, reading)
        }
        self.isBeginning = false
    }

    private func finish(_ reading: Reading, _ result: Result<StreamReading.Contents, RoomBrokerError>) {
        self.endPage(reading)
        reading.complete(result)
        self.beginWaiting()
    }

    private func endPage(_ reading: Reading) {
        self.readingCount -= 1
        self.readingBytes -= self.cost(reading)
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
        switch reading.pages.received(page) {
        case .read(let range):
            // The others have their turn: a history may have many pages.
            self.endPage(reading)
            self.begin(range, reading)
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
    func beginAnew(_ keys: RoomKeys, _ position: StreamPosition, _ complete: @escaping (Bool) -> Void) {
        let arguments: [RedisArgument] = [.text(position.epoch), .text("\(position.offset)"), self.newEpoch()]
        self.client.perform(RoomScripts.beginAnew, keys: [keys.meta], arguments: arguments) { result in
            if case .success = result { complete(true) } else { complete(false) }
        }
    }
}
