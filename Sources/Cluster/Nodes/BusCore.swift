import RedisEngine
import StreamTransport
import Synchronization
import WireText

/// The part of a `RedisBus` that lives on its loop.
final class BusCore {
    typealias Completion<Answer> = (Result<Answer, ClusterError>) -> Void

    private static let stopTimeout = Duration.seconds(2)
    /// Longest wait for an answer.
    private static let longestTimeout = Duration.seconds(300)

    /// A message of another node that is handled.
    private struct HandledKey: Hashable {
        let instance: String
        let number: UInt64

        init(_ envelope: BusEnvelope) { (self.instance, self.number) = (envelope.instance, envelope.number) }
    }

    /// A call that its caller may withdraw.
    final class CallCancellation {
        fileprivate var number: UInt64?
        fileprivate var isWithdrawn = false
    }

    var handler: (@Sendable (ClusterMessage) async -> [UInt8])?
    var reached: (@Sendable () -> Void)?
    private let client: RedisClient
    private let settings: RedisBusSettings
    private let registry: NodeRegistry
    private let counters: RedisBusCounters
    private let load: @Sendable () -> NodeLoad
    private let wallClock: @Sendable () -> Int64
    private let observe: @Sendable (RedisBusEvent) -> Void
    private var calls: [UInt64: PendingCall] = [:]
    private var lastNumber: UInt64 = 0
    private var assembly = BusAssembly()
    /// Calls and announcements of other nodes.
    private var handled: [HandledKey: Task<Void, Never>] = [:]
    /// Announcements among them.
    private var handledAnnouncements = 0
    private let renewalTimer = LoopTimer()
    /// Consecutive refusals of the lease for one reason.
    private var refusals: (reason: String, count: Int)?
    private var isRegistered = false
    private var isRenewing = false
    private var isStopped = true
    private var clockDifference: Duration?

    init(
        _ client: RedisClient, _ settings: RedisBusSettings, _ counters: RedisBusCounters,
        load: @escaping @Sendable () -> NodeLoad, wallClock: @escaping @Sendable () -> Int64,
        observe: @escaping @Sendable (RedisBusEvent) -> Void
    ) {
        self.client = client
        self.settings = settings
        self.registry = NodeRegistry(prefix: settings.keyPrefix)
        self.counters = counters
        self.load = load
        self.wallClock = wallClock
        self.observe = observe
    }

    private var loop: Loop { self.client.loop }

    func start() {
        guard self.isStopped else { return }
        self.isStopped = false
        self.client.delegate = self
        self.client.subscribe(self.registry.channelOfAll)
        self.client.start()
    }

    func stop(_ completion: @escaping () -> Void) {
        guard !self.isStopped else { return completion() }
        self.isStopped = true
        self.loop.disarm(self.renewalTimer)
        let arguments: [RedisArgument] = [.text(self.settings.nodeName), .text(self.record.holder)]
        self.client.perform(
            NodeRegistry.remove, keys: self.registry.keys, arguments: arguments, timeout: Self.stopTimeout
        ) { _ in
            self.client.stop()
            for number in Array(self.calls.keys) { self.finish(number, .failure(.away)) }
            completion()
        }
    }

    // MARK: Registry

    private var record: NodeRecord {
        var record = NodeRecord(
            name: self.settings.nodeName, instance: self.settings.instance, version: self.settings.version,
            startTime: self.settings.startTime, remainingLease: .zero)
        record.load = self.load()
        record.clockDifference = self.clockDifference
        return record
    }

    private func renew() {
        guard !self.isStopped else { return }
        self.loop.arm(self.renewalTimer, after: self.settings.renewalInterval, target: self)
        guard !self.isRenewing, self.client.isReady else { return }
        self.isRenewing = true
        let record = self.record
        let arguments: [RedisArgument] = [
            .text(record.name), .text(record.holder), .text(record.encoded),
            .number(Int(self.settings.lease / .milliseconds(1))),
        ]
        let began = self.wallClock()
        self.client.perform(NodeRegistry.renew, keys: self.registry.keys, arguments: arguments) { [weak self] result in
            guard let self else { return }
            self.isRenewing = false
            self.renewed(result, began: began)
        }
    }

    private func renewed(_ result: Result<RedisValue, RedisClientError>, began: Int64) {
        guard !self.isStopped else { return }
        do {
            let values = try result.get().array()
            guard values.count >= 3 else { return }
            let ended = self.wallClock()
            let redis = Duration.seconds(try values[1].int()) + .microseconds(try values[2].int())
            // Redis read its clock about in the middle between question and answer.
            self.clockDifference = .nanoseconds(began / 2 + ended / 2) - redis
            if try values[0].int() == 1 {
                self.registered()
            } else {
                self.nameTaken(by: (try? values.last?.text()) ?? "")
            }
        } catch let error as RedisClientError {
            if case .server(let refusal) = error { self.refused("\(refusal)") }
        } catch {
            self.observe(.reported("the node's lease was not renewed: \(error)"))
        }
    }

    /// The first refusal may be that of a server that starts, or is replaced.
    private func refused(_ reason: String) {
        self.refusals = self.refusals?.reason == reason ? (reason, (self.refusals?.count ?? 0) + 1) : (reason, 1)
        if self.refusals?.count == 2 {
            self.observe(.refused(reason))
        } else {
            self.observe(.reported("the node's lease was not renewed: Redis answered: \(reason)"))
        }
    }

    private func registered() {
        self.refusals = nil
        guard !self.isRegistered else { return }
        self.isRegistered = true
        self.client.subscribe(self.registry.channel(of: self.settings.nodeName))
        self.observe(.registered)
    }

    /// - Parameter holder: the other instance, as records have it.
    private func nameTaken(by holder: String) {
        self.isRegistered = false
        // The other node's messages are not for this one.
        self.client.unsubscribe(self.registry.channel(of: self.settings.nodeName))
        self.observe(.nameTaken(instance: PercentCoding.decodedText(holder[...]) ?? holder))
    }

    func list(_ completion: @escaping Completion<[NodeRecord]>) {
        self.client.perform(NodeRegistry.list, keys: self.registry.keys, arguments: []) { result in
            let reply: RedisValue
            switch result {
            case .success(let value): reply = value
            case .failure(let error): return completion(.failure(Self.failure(error)))
            }
            guard var records = try? NodeRegistry.records(reply) else { return completion(.failure(.away)) }
            // This node's own record may be late, or another instance's.
            var own = self.record
            own.remainingLease = records.first { $0.instance == own.instance }?.remainingLease ?? .zero
            records.removeAll { $0.name == own.name }
            let index = records.firstIndex { $0.name > own.name } ?? records.count
            records.insert(own, at: index)
            completion(.success(records))
        }
    }

    private static func failure(_ error: RedisClientError) -> ClusterError {
        if case .server(let refusal) = error { .refused("\(refusal)") } else { .away }
    }

    // MARK: Kept values

    private var keptValues: KeptValues { KeptValues(prefix: self.settings.keyPrefix) }

    func keep(_ arguments: [RedisArgument], _ completion: @escaping Completion<Void>) {
        self.client.perform(KeptValues.keep, keys: self.keptValues.keys, arguments: arguments) { result in
            completion(result.map { _ in () }.mapError(Self.failure))
        }
    }

    func kept(from cursor: String, _ completion: @escaping Completion<(values: [[UInt8]], next: String)>) {
        let kept = self.keptValues
        self.client.perform(kept.scan(from: cursor), key: kept.keys.first) { result in
            completion(
                result.mapError(Self.failure).flatMap { reply in
                    KeptValues.page(reply).map { .success($0) } ?? .failure(.away)
                })
        }
    }

    // MARK: Calls

    func call(
        _ node: String, _ message: [UInt8], timeout: Duration, _ withdrawal: CallCancellation,
        _ completion: @escaping Completion<[UInt8]>
    ) {
        guard !withdrawal.isWithdrawn else { return completion(.failure(.timeout(node: node))) }
        // Without the name, answers would reach the node that has it.
        guard !self.isStopped, self.isRegistered else { return completion(.failure(.away)) }
        guard self.calls.count < self.settings.maximumCalls else { return completion(.failure(.busy)) }
        let number = self.nextNumber()
        let call = PendingCall(number, to: node, in: self, completion)
        withdrawal.number = number
        self.calls[number] = call
        self.loop.arm(call.timer, after: min(max(.zero, timeout), Self.longestTimeout), target: call)
        self.publish(.call, number: number, message, to: self.registry.channel(of: node)) { [weak self] receivers in
            switch receivers {
            case .success(0): self?.finish(number, .failure(.unknownNode(node)))
            case .success: break
            case .failure(let error): self?.finish(number, .failure(error))
            }
        }
    }

    /// The caller does not wait any more.
    func withdraw(_ withdrawal: CallCancellation) {
        withdrawal.isWithdrawn = true
        if let number = withdrawal.number { self.endWaiting(number) }
    }

    /// Ends a call that has no answer, and has the node end its work for it.
    fileprivate func endWaiting(_ number: UInt64) {
        guard let node = self.calls[number]?.node else { return }
        self.publish(.withdrawal, number: number, [], to: self.registry.channel(of: node)) { _ in }
        self.finish(number, .failure(.timeout(node: node)))
    }

    func announce(_ message: [UInt8], _ completion: @escaping Completion<Void>) {
        guard !self.isStopped, self.client.isReady else { return completion(.failure(.away)) }
        self.publish(.announcement, number: self.nextNumber(), message, to: self.registry.channelOfAll) { result in
            completion(result.map { _ in () })
        }
    }

    private func nextNumber() -> UInt64 {
        self.lastNumber += 1
        return self.lastNumber
    }

    fileprivate func finish(_ number: UInt64, _ result: Result<[UInt8], ClusterError>) {
        guard let call = self.calls.removeValue(forKey: number) else { return }
        self.loop.disarm(call.timer)
        call.completion(result)
    }

    /// - Parameter completion: gets the number of receivers of the last part.
    private func publish(
        _ kind: BusEnvelope.Kind, number: UInt64, _ message: [UInt8], to channel: [UInt8],
        _ completion: @escaping Completion<Int64>
    ) {
        let parts = BusEnvelope.parts(
            kind, number: number, sender: self.settings.nodeName, instance: self.settings.instance, message)
        for (index, part) in parts.enumerated() {
            let command = RedisCommand(self.client.publishCommand, .bytes(channel), .bytes(part.encoded))
            self.client.perform(command, key: channel) { result in
                guard index == parts.count - 1 else { return }
                completion(result.map { (try? $0.int()) ?? 0 }.mapError { _ in .away })
            }
        }
    }

    // MARK: Messages

    private func received(_ payload: [UInt8]) {
        guard let envelope = BusEnvelope(decoding: payload) else {
            self.counters.malformed.add(1, ordering: .relaxed)
            return
        }
        if envelope.kind == .announcement, envelope.instance == self.settings.instance { return }
        guard let message = self.assembly.add(envelope) else { return }
        switch envelope.kind {
        case .call, .announcement: self.handle(envelope, message)
        case .answer: self.answered(envelope, .success(message))
        case .refusal: self.answered(envelope, .failure(.busy))
        case .answerTooLarge: self.answered(envelope, .failure(.tooLarge(limit: BusEnvelope.messageLimit)))
        case .withdrawal: self.handled[HandledKey(envelope)]?.cancel()
        }
    }

    private func answered(_ envelope: BusEnvelope, _ result: Result<[UInt8], ClusterError>) {
        guard let call = self.calls[envelope.number], call.node == envelope.sender else {
            self.counters.late.add(1, ordering: .relaxed)
            return
        }
        self.finish(envelope.number, result)
    }

    private func handle(_ envelope: BusEnvelope, _ bytes: [UInt8]) {
        let key = HandledKey(envelope)
        // Numbers are not used twice.
        guard let handler = self.handler, self.handled[key] == nil else { return }
        let isAnnouncement = envelope.kind == .announcement
        guard self.canHandle(isAnnouncement: isAnnouncement) else {
            self.counters.refused.add(1, ordering: .relaxed)
            if !isAnnouncement { self.answer(envelope.sender, envelope.number, .refusal, []) }
            return
        }
        if isAnnouncement {
            self.handledAnnouncements += 1
            self.counters.announcements.add(1, ordering: .relaxed)
        } else {
            self.counters.calls.add(1, ordering: .relaxed)
        }
        let message = ClusterMessage(sender: envelope.sender, isAnnouncement: isAnnouncement, bytes: bytes)
        let (sender, number) = (envelope.sender, envelope.number)
        let core = LoopIsolated(self, on: self.loop)
        self.handled[key] = Task {
            let answer = await handler(message)
            // The caller of a withdrawn call has dropped its number, and would ignore an answer.
            let isAnswered = !isAnnouncement && !Task.isCancelled
            core.execute { core in
                core.handled[key] = nil
                if isAnnouncement { core.handledAnnouncements -= 1 }
                if isAnswered { core.answer(sender, number, .answer, answer) }
            }
        }
    }

    /// Calls may wait for long, and announcements are not repeated: calls never take their places.
    private func canHandle(isAnnouncement: Bool) -> Bool {
        if isAnnouncement { return self.handledAnnouncements < self.settings.maximumAnnouncements }
        return self.handled.count - self.handledAnnouncements < self.settings.maximumHandled
    }

    private func answer(_ node: String, _ number: UInt64, _ kind: BusEnvelope.Kind, _ bytes: [UInt8]) {
        guard !self.isStopped else { return }
        let isTooLarge = bytes.count > BusEnvelope.messageLimit
        // An answer that is lost ends the call with its timeout.
        self.publish(
            isTooLarge ? .answerTooLarge : kind, number: number, isTooLarge ? [] : bytes,
            to: self.registry.channel(of: node)
        ) { _ in }
    }
}

extension BusCore: RedisClientDelegate {
    func redisBecameReady(_ client: RedisClient) {
        self.renew()
        self.reached?()
    }

    func redisWentAway(_ client: RedisClient, _ failure: String) {
        self.isRegistered = false
        self.observe(.away(failure))
    }

    func redisReported(_ client: RedisClient, _ text: String) { self.observe(.reported(text)) }
    func redisSubscribed(_ client: RedisClient, to channel: [UInt8]) {}
    func redisReceived(_ client: RedisClient, _ payload: [UInt8], on channel: [UInt8]) { self.received(payload) }
}

extension BusCore: TimerTarget {
    func timerFired(_ timer: LoopTimer) { self.renew() }
}

/// A call that waits for its answer.
private final class PendingCall {
    let node: String
    let completion: BusCore.Completion<[UInt8]>
    let timer = LoopTimer()
    private let number: UInt64
    private weak var core: BusCore?

    init(
        _ number: UInt64, to node: String, in core: BusCore, _ completion: @escaping BusCore.Completion<[UInt8]>
    ) {
        self.number = number
        self.node = node
        self.core = core
        self.completion = completion
    }
}

extension PendingCall: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.core?.endWaiting(self.number)
    }
}
