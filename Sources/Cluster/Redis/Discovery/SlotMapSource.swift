import RedisEngine
import StreamTransport

protocol SlotMapSourceOwner: AnyObject {
    /// Nodes to ask, in this order.
    var slotMapCandidates: [RedisEndpoint] { get }
    func slotMapRead(_ map: RedisSlotMap)
    /// No node answered; the source asks again after a pause.
    func slotMapFailed(_ failure: String)
}

/// Asks the nodes of a cluster which of them serves which slot: one after the other until one answers, and not more often
/// than the pauses below.
///
/// Confined to its loop.
final class SlotMapSource {
    /// Between two rounds; doubled after each that did not help, and drawn from half of it on.
    private static let shortestPause = Duration.milliseconds(200)
    private static let longestPause = Duration.seconds(5)
    private static let timeout = Duration.seconds(2)

    weak var owner: (any SlotMapSourceOwner)?
    private let credentials: RedisCredentials?
    private let context: RedisContext
    private var query: RedisQuery?
    private var candidates: ArraySlice<RedisEndpoint> = []
    private var lastFailure = ""
    private let timer = LoopTimer()
    private var lastRound: MonotonicInstant?
    private var pause = SlotMapSource.shortestPause
    private var isStopped = false

    init(credentials: RedisCredentials?, _ context: RedisContext) {
        self.credentials = credentials
        self.context = context
    }

    /// Asks soon. Nothing changes while a round is running or due.
    func refresh() {
        guard !self.isStopped, self.query == nil, self.timer.deadline == nil else { return }
        let now = self.context.loop.now
        let earliest = self.lastRound.map { $0.advanced(by: self.pause) } ?? now
        let wait = max(.zero, now.duration(to: earliest))
        let jitter = Double.random(in: 0.5...1, using: &self.context.generator)
        self.context.arm(self.timer, after: wait * jitter, target: self)
    }

    func slotWasRight() { self.pause = Self.shortestPause }

    /// A node does not have the slot that the map says.
    func slotWasWrong() {
        self.pause = min(self.pause * 2, Self.longestPause)
        self.refresh()
    }

    func stop() {
        self.isStopped = true
        self.query.take()?.cancel()
        self.context.loop.disarm(self.timer)
    }

    private func askNext() {
        guard let node = self.candidates.popFirst() else {
            self.pause = min(self.pause * 2, Self.longestPause)
            self.refresh()
            self.owner?.slotMapFailed(self.lastFailure)
            return
        }
        self.ask(node, "SHARDS")
    }

    private func ask(_ node: RedisEndpoint, _ subcommand: String) {
        let command = RedisCommand("CLUSTER", .text(subcommand))
        self.query = RedisQuery(
            command, to: .endpoint(node), credentials: self.credentials, timeout: Self.timeout, self.context
        ) { [weak self] result in
            self?.query = nil
            self?.answered(result, by: node, subcommand)
        }
    }

    private func answered(
        _ result: Result<RedisValue, RedisLinkFailure>, by node: RedisEndpoint, _ subcommand: String
    ) {
        do {
            let reply = try result.get()
            if let error = reply.serverError {
                // Servers before Redis 7 do not know SHARDS.
                if subcommand == "SHARDS", error.code == .generic { return self.ask(node, "SLOTS") }
                return self.failed("\(node): \(error)")
            }
            let map =
                subcommand == "SHARDS"
                ? try RedisSlotMap(shards: reply, asked: node, usesTLS: self.context.usesTLS)
                : try RedisSlotMap(slots: reply, asked: node)
            guard !map.nodes.isEmpty else { return self.failed("\(node): no node of the Redis cluster has slots") }
            if map.isStale { self.refresh() } else { self.slotWasRight() }
            self.owner?.slotMapRead(map)
        } catch {
            self.failed("\(node): \(error)")
        }
    }

    private func failed(_ failure: String) {
        self.lastFailure = failure
        self.askNext()
    }
}

extension SlotMapSource: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard let owner = self.owner else { return }
        self.lastRound = self.context.loop.now
        self.candidates = owner.slotMapCandidates[...]
        self.askNext()
    }
}
