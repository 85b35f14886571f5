import ByteKernels
import DequeModule
import RedisEngine
import SessionTasks
import StreamTransport

/// Receives what happens on a link, within the link's handling of an event: every function may close the link.
protocol RedisLinkOwner: AnyObject {
    /// The handshake is over, and the scripts are loaded.
    func linkBecameReady(_ link: RedisLink)
    func link(_ link: RedisLink, pushed push: RedisPush)
    /// A command of `changeSubscriptions` was answered, with an error or without.
    func link(_ link: RedisLink, changed channels: [[UInt8]], isSubscribed: Bool, refused: RedisServerError?)
    /// Called once, last; not after `close`.
    func linkEnded(_ link: RedisLink, _ failure: RedisLinkFailure)
}

/// One connection to one server, with its transport. When it has ended it does not connect again.
///
/// Confined to its loop. Its time stops while messages are paused: nothing is read then, so nothing can be late.
final class RedisLink {
    /// Requirements on the server.
    struct Requirements {
        /// Messages and replies on one connection.
        var isRESP3 = true
        var isPrimary = true
        /// Loaded before the link is ready, and before commands given earlier.
        var scripts: [RedisScript] = []
    }

    private enum Phase {
        /// Not opened yet, or the opening failed.
        case unconnected
        case connecting(TransportOpening)
        /// Commands are accepted, but the handshake or the loading of scripts is not over.
        case preparing(any Transport)
        case ready(any Transport)
        case ended
    }

    private enum Entry {
        case command(RedisCompletion, size: Int, submitted: MonotonicInstant)
        case subscription(channels: [[UInt8]], isSubscribed: Bool)
        case script
    }

    /// Version of Redis from which on a server is used for messages: it has `SPUBLISH`, and `PEXPIRE` with `GT`.
    private static let oldestVersion = 7
    /// Bytes that the transport has not sent, above which it gets no more.
    private static let highWatermark = 256 << 10

    let address: RedisServerAddress
    weak var owner: (any RedisLinkOwner)?
    private let context: RedisContext
    private let requirements: Requirements
    private var connection: RedisConnection
    private var entries: Deque<(id: RedisCommandID, entry: Entry)> = []
    private var phase = Phase.unconnected
    private let timer = LoopTimer()
    private var flushIsRequested = false
    private var unloadedScripts = 0
    /// Unanswered commands, without subscriptions and scripts, and their bytes.
    private var commandCount = 0
    private var commandBytes = 0
    /// A reply said that the server is no primary any more: the end of the connection is the next event.
    private var isDemoted = false
    private var pausedSince: MonotonicInstant?
    private var pausedTime = Duration.zero

    init(
        to address: RedisServerAddress, credentials: RedisCredentials?, database: Int, requirements: Requirements,
        _ context: RedisContext
    ) {
        self.address = address
        self.context = context
        self.requirements = requirements
        self.connection = RedisConnection(settings: context.settings.connection(credentials, database: database))
    }

    var isReady: Bool { if case .ready = self.phase { true } else { false } }

    private var isEnded: Bool { if case .ended = self.phase { true } else { false } }

    private var transport: (any Transport)? {
        switch self.phase {
        case .unconnected, .connecting, .ended: nil
        case .preparing(let transport), .ready(let transport): transport
        }
    }

    /// Whether no command is unanswered.
    var isIdle: Bool { self.commandCount == 0 }

    private var loop: Loop { self.context.loop }

    private var now: Duration {
        .nanoseconds((self.pausedSince ?? self.loop.now).nanoseconds) - self.pausedTime
    }

    /// Connects. The owner's functions are called in later turns only.
    func open() {
        let settings = self.context.settings
        let timeout = settings.connectTimeout + settings.handshakeTimeout + settings.commandTimeout
        for script in self.requirements.scripts {
            guard let id = try? self.connection.submit(script.load, deadline: self.now + timeout) else { continue }
            self.unloadedScripts += 1
            self.entries.append((id, .script))
        }
        guard let target = self.context.target(self.address) else {
            return self.context.later.add { self.finish(.noTLS) }
        }
        self.phase = .connecting(TransportOpening(target, on: self.loop) { [weak self] in self?.opened($0) })
        self.requestFlush()
    }

    private func opened(_ result: Result<any Transport, TransportFailure>) {
        switch result {
        case .success(let transport):
            self.phase = .preparing(transport)
            transport.consumer = self
            if self.pausedSince == nil { transport.resumeReading() }
            if let event = self.connection.connected(now: self.now) { self.handle(event) }
            self.requestFlush()
        case .failure(let failure):
            self.phase = .unconnected
            self.finish(.transport(failure))
        }
    }

    // MARK: Commands

    /// - Parameter completion: called once, in a later turn.
    func submit(
        _ command: RedisCommand, timeout: Duration, isAsking: Bool = false, _ completion: @escaping RedisCompletion
    ) {
        let size = command.encodedSize
        let settings = self.context.settings
        guard self.commandCount < settings.maximumCommands, size <= settings.maximumCommandBytes - self.commandBytes,
            let id = try? self.connection.submit(command, deadline: self.now + timeout, isAsking: isAsking)
        else { return self.context.refuse(completion) }
        self.commandCount += 1
        self.commandBytes += size
        self.context.counters.submitted()
        self.entries.append((id, .command(completion, size: size, submitted: self.loop.now)))
        self.requestFlush()
    }

    /// - Returns: whether the connection accepted the command.
    func changeSubscriptions(_ kind: RedisSubscription, isSubscribed: Bool, channels: [[UInt8]]) -> Bool {
        let deadline = self.now + self.context.settings.commandTimeout
        // A node that loses a slot ends the subscriptions to its channels by itself, and answers the command with an error
        // then. With each channel twice, what it sent by itself cannot be the complete answer to the command.
        let isDoubled = kind == .shard && !isSubscribed
        let id = try? self.connection.changeSubscription(
            kind, isSubscribed: isSubscribed, channels: isDoubled ? channels.flatMap { [$0, $0] } : channels,
            deadline: deadline)
        guard let id else { return false }
        self.entries.append((id, .subscription(channels: channels, isSubscribed: isSubscribed)))
        self.requestFlush()
        return true
    }

    /// Stops reading, and the time of deadlines.
    func pause() {
        guard self.pausedSince == nil else { return }
        self.pausedSince = self.loop.now
        self.transport?.pauseReading()
        self.requestFlush()
    }

    func resume() {
        guard let since = self.pausedSince.take() else { return }
        self.pausedTime += since.duration(to: self.loop.now)
        self.transport?.resumeReading()
        self.requestFlush()
    }

    /// Ends the link. Completions are called in the next turn; the owner is not.
    func close() {
        self.owner = nil
        self.end(.connection(.closed))
    }

    /// Ends the link for a reason that its owner found.
    func end(_ failure: RedisLinkFailure) {
        guard !self.isEnded, case .ended(_, let abandoned) = self.connection.close() else { return }
        self.finish(failure, abandoned)
    }

    // MARK: Events

    private func handle(_ event: RedisConnection.Event) {
        switch event {
        case .ready(let info): self.handshakeCompleted(info)
        case .reply(let id, let value): self.replied(id, value)
        case .push(let push, let id):
            self.owner?.link(self, pushed: push)
            if let id { self.confirmed(id) }
        case .ended(let failure, let abandoned): self.finish(.connection(failure), abandoned)
        }
    }

    private func handshakeCompleted(_ info: RedisServerInfo) {
        if self.requirements.isRESP3 {
            if info.isRedis(before: Self.oldestVersion) { return self.end(.tooOld(version: info.version)) }
            if info.protocolVersion < 3 { return self.end(.noRESP3) }
        }
        if self.requirements.isPrimary, info.role == "replica" { return self.end(.isReplica) }
        self.becomeReady()
    }

    private func becomeReady() {
        guard self.connection.isReady, self.unloadedScripts == 0, case .preparing(let transport) = self.phase
        else { return }
        self.phase = .ready(transport)
        self.owner?.linkBecameReady(self)
    }

    private func confirmed(_ id: RedisCommandID) {
        guard let (first, entry) = self.entries.first, first == id,
            case .subscription(let channels, let isSubscribed) = entry
        else { return }
        self.entries.removeFirst()
        self.owner?.link(self, changed: channels, isSubscribed: isSubscribed, refused: nil)
    }

    private func replied(_ id: RedisCommandID, _ value: RedisValue) {
        guard let (first, entry) = self.entries.first, first == id else {
            assertionFailure("a reply to \(id), which is not the oldest command")
            return self.end(.connection(.violation(RedisViolation(.unrequestedReply, at: 0))))
        }
        self.entries.removeFirst()
        let error = value.serverError
        if error?.code == .readOnly || error?.code == .masterDown { self.isDemoted = true }
        switch entry {
        case .command(let completion, let size, let submitted):
            self.commandCount -= 1
            self.commandBytes -= size
            self.context.counters.replied(after: self.loop.now.nanoseconds - submitted.nanoseconds)
            if error != nil { self.context.counters.failed() }
            completion(error.map { .failure(.server($0)) } ?? .success(value))
            if error?.code == .loading, self.requirements.isPrimary { self.end(.isLoading) }
        case .subscription(let channels, let isSubscribed):
            self.owner?.link(self, changed: channels, isSubscribed: isSubscribed, refused: error)
        case .script:
            if let error { return self.end(error.code == .loading ? .isLoading : .scriptRefused(error)) }
            self.unloadedScripts -= 1
            self.becomeReady()
        }
    }

    private func finish(_ failure: RedisLinkFailure) {
        guard case .ended(_, let abandoned) = self.connection.transportEnded() else { return }
        self.finish(failure, abandoned)
    }

    private func finish(_ failure: RedisLinkFailure, _ abandoned: RedisAbandonedCommands) {
        let phase = self.phase
        self.phase = .ended
        self.loop.disarm(self.timer)
        switch phase {
        case .ended: return
        case .unconnected: break
        case .connecting(let opening): opening.cancel()
        case .preparing(let transport), .ready(let transport):
            transport.consumer = nil
            transport.close(linger: .zero)
        }
        self.abandon(firstUnsent: abandoned.unsent.first)
        self.owner.take()?.linkEnded(self, failure)
    }

    /// Fails all commands, in the next turn.
    private func abandon(firstUnsent: RedisCommandID?) {
        let entries = self.entries
        self.entries = []
        for (id, entry) in entries {
            guard case .command(let completion, _, _) = entry else { continue }
            self.context.counters.failed()
            let isUnsent = firstUnsent.map { id >= $0 } ?? false
            self.context.later.add { completion(.failure(isUnsent ? .notSent : .uncertain)) }
        }
    }

    // MARK: Output and deadlines

    private func requestFlush() {
        guard !self.flushIsRequested, !self.isEnded else { return }
        self.flushIsRequested = true
        self.loop.atTurnEnd(self)
    }

    private func flush() {
        guard !self.isEnded else { return }
        if let transport = self.transport {
            while self.connection.hasOutput {
                guard transport.queuedBytes < Self.highWatermark else {
                    transport.awaitProgress()
                    break
                }
                let bytes = self.connection.takeOutput(limit: Self.highWatermark)
                bytes.withRawSpan { _ = transport.write($0) }
            }
        }
        self.rearm()
    }

    private func rearm() {
        guard self.pausedSince == nil, let deadline = self.connection.nextDeadline else {
            return self.loop.disarm(self.timer)
        }
        self.context.arm(self.timer, after: deadline - self.now, target: self)
    }
}

extension RedisLink: TurnEndTarget {
    func turnEnded() {
        self.flushIsRequested = false
        self.flush()
    }
}

extension RedisLink: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard !self.isEnded else { return }
        // A client that was let go without `stop` leaves nothing behind.
        guard self.owner != nil else { return self.close() }
        if let event = self.connection.deadlineReached(now: self.now) { self.handle(event) }
        self.requestFlush()
    }
}

extension RedisLink: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        var position = 0
        while self.isDemoted || self.pausedSince == nil && !self.loop.budgetIsSpent {
            let start = position
            let event = self.connection.nextEvent(in: bytes.bytes, at: &position, now: self.now)
            self.loop.spend(TurnBudget.frame + position - start)
            guard let event else { break }
            self.handle(event)
        }
        self.requestFlush()
        return position
    }

    /// No server half-closes: it has ended the connection.
    func inputClosed() {
        self.finish(.connection(.lost))
    }

    func outputProgressed() {
        self.requestFlush()
    }

    func transportEnded(_ end: TransportEnd) {
        switch end {
        case .failed(let failure): self.finish(.transport(failure))
        case .closed, .abandoned: self.finish(.connection(.lost))
        }
    }
}
