import DequeModule
import Rooms
import SessionTasks
import StreamTransport

/// The members of all rooms on one loop.
///
/// Messages are delivered at the end of the turn, to each member all at once. Deliveries beyond their share of the turn
/// (`TurnBudget`) follow in the next turns. While this loop, or another with members of the room, is behind,
/// members that publish are not read.
final class LoopRooms {
    /// Cost of delivering to one member, in units of `TurnBudget`.
    private static let visitWork = 4096
    /// Cost of matching one publication that a member does not want.
    private static let filterWork = 512
    /// Messages delivered to one member before the next one is served.
    private static let messagesPerVisit = 512
    private static let sweepInterval: Duration = .seconds(10)
    /// Time that a member waits for a room to open, or for the next part of its history or of those read before it.
    private static let entryTimeout: Duration = .seconds(5)
    /// Time that it waits in all.
    private static let longestEntry: Duration = .seconds(30)

    let hub: RoomHub
    let index: Int
    let loop: Loop
    private(set) var rooms: [String: LoopRoom] = [:]
    private let backlog: RoomBacklog
    private var lastNumber: UInt64 = 0

    /// Cost of this loop's own messages that are not delivered, in bytes.
    private var pendingCost = 0
    /// Members with undelivered messages whose output has space.
    private var ready: Deque<RoomSubscription> = []
    /// Members whose reading is paused.
    private var pausedMembers: [RoomSubscription] = []
    /// Rooms whose messages another loop is behind with, by that loop.
    private var blockedRooms: [Int: [LoopRoom]] = [:]
    private let sweepTimer = LoopTimer()
    /// Members that wait for their room to open, by its name.
    private var waiting: [String: [WaitingEntry]] = [:]
    /// Members that wait to be listed, and what tells them that they are in the room.
    private var entering: [ObjectIdentifier: () -> Void] = [:]
    /// Loops that are behind with messages that the broker received.
    private var blockedFeed: Set<Int> = []
    private(set) lazy var broker: any RoomBroker = self.makeBroker()
    /// Clients of the protocol on this loop, by their identifiers.
    var sessions: [String: RoomSession] = [:]
    /// Clients of the protocol without a WebSocket on this loop, by their secrets.
    var emulated: [String: EmulatedStream] = [:]
    /// Rooms whose deliveries are not yet added to the counters.
    private var servedRooms: [LoopRoom] = []

    /// Some members are still ready after the turn's budget is spent.
    private var isBehind = false
    private var hasArrivals = false
    private var isScheduled = false

    init(hub: RoomHub, loop: Loop, loopIndex: Int) {
        self.hub = hub
        self.loop = loop
        self.index = loopIndex
        self.backlog = RoomBacklog(hub.buffers)
    }

    var now: Duration { .nanoseconds(Int64(clamping: self.loop.now.nanoseconds)) }

    // MARK: Members

    struct Joined {
        let subscription: RoomSubscription
        let result: RoomClient.JoinResult
    }

    /// A member that wants to enter a room.
    struct Entry {
        let member: any RoomSubscriber
        /// Shown to the room's other members; `nil` shows nothing.
        let info: ClientInfo?
        /// For the limits of one client; `nil` for a member of the server's own.
        var client: RoomClientKey?
        var isPositioned = false
        /// Publications are wanted as differences to the one before.
        var usesDeltas = false
        /// Publications are wanted if it matches their tags; `nil` wants all.
        var filter: TagFilter?
        /// Publications after it are wanted; `nil` for none.
        var recovery: StreamPosition?
        /// The member enters only if it recovers all of them.
        var rejectsLoss = false
        /// Publications that the member recovers at most.
        var limit = 0
        /// Called once, perhaps before `join` returns; at the latest after `longestEntry`.
        let complete: (Result<Joined, SharedRoom.JoinError>) -> Void
    }

    private struct WaitingEntry {
        let entry: Entry
        let shared: SharedRoom
        let began: Duration

        /// - Parameter lastProgress: of the room.
        func isLate(at now: Duration, _ lastProgress: Duration) -> Bool {
            now >= self.began + LoopRooms.longestEntry || now >= max(self.began, lastProgress) + LoopRooms.entryTimeout
        }
    }

    /// Adds a member to a room, as soon as the room is open.
    func join(_ name: String, _ entry: Entry) {
        self.loop.assertOnLoop()
        do {
            // Each subscription is one use of the shared room.
            let shared = try self.acquire(name, for: entry.client)
            self.enter(WaitingEntry(entry: entry, shared: shared, began: self.now))
        } catch {
            entry.complete(.failure(.notMade(error)))
        }
    }

    /// The room of this name, made on first use, until `RoomHub.release`.
    /// - Parameter client: that uses it; `nil` for the server itself.
    func acquire(_ name: String, for client: RoomClientKey?) throws(RoomHub.AcquireError) -> SharedRoom {
        // Rooms without members are swept too, so that names that publishers make up do not stay.
        if self.sweepTimer.deadline == nil { self.loop.arm(self.sweepTimer, after: Self.sweepInterval, target: self) }
        return try self.hub.acquire(name, for: client)
    }

    private func enter(_ waiting: WaitingEntry, isPatient: Bool = true) {
        let (entry, shared) = (waiting.entry, waiting.shared)
        let joined: SharedRoom.Membership
        do {
            joined = try shared.join(
                onLoop: self.index, info: entry.info, recovering: entry.recovery, limit: entry.limit,
                rejectsLoss: entry.rejectsLoss, usesDeltas: entry.usesDeltas, isPatient: isPatient, now: self.now)
        } catch .notReady {
            self.waiting[shared.name, default: []].append(waiting)
            return self.broker.open(shared)
        } catch {
            self.hub.release(shared)
            return entry.complete(.failure(error))
        }
        let room =
            self.rooms[shared.name]
            ?? LoopRoom(shared, loop: self.index, self.backlog, self.hub.counters.of(shared.policy))
        self.rooms[shared.name] = room
        self.lastNumber += 1
        let subscription = room.add(entry, joined, number: self.lastNumber)
        self.announce(joined.loops, of: room)
        self.pauseIfBehind(subscription)
        let complete = { entry.complete(.success(Joined(subscription: subscription, result: joined.result))) }
        guard let info = entry.info else { return complete() }
        room.set(subscription, .entering)
        self.entering[ObjectIdentifier(subscription)] = complete
        self.broker.entered(shared, info) { [weak self] in self?.finishEntering(subscription) }
    }

    /// Tells the member that it is in the room, and delivers what came since it is.
    private func finishEntering(_ subscription: RoomSubscription) {
        guard let complete = self.entering.removeValue(forKey: ObjectIdentifier(subscription)) else { return }
        complete()
        // The member may have left at once.
        guard subscription.state == .entering else { return }
        subscription.updateBatchOutput()
        guard subscription.room.hasMore(for: subscription) else { return subscription.room.set(subscription, .idle) }
        self.enqueue(subscription)
        self.scheduleDelivery()
    }

    /// The room has opened, or has caught up with other nodes.
    /// - Parameter isPatient: whether members keep waiting for publications that this node does not have.
    func opened(_ name: String, isPatient: Bool) {
        for waiting in self.waiting.removeValue(forKey: name) ?? [] { self.enter(waiting, isPatient: isPatient) }
    }

    /// Gives up on members that have waited for too long.
    func refuseLateEntries() {
        guard !self.waiting.isEmpty else { return }
        let now = self.now
        // One that is refused may begin to wait for another room.
        for name in Array(self.waiting.keys) {
            guard let all = self.waiting[name] else { continue }
            let lastProgress = all.first?.shared.lastProgress ?? .zero
            let late = all.filter { $0.isLate(at: now, lastProgress) }
            guard !late.isEmpty else { continue }
            let rest = all.filter { !$0.isLate(at: now, lastProgress) }
            self.waiting[name] = rest.isEmpty ? nil : rest
            for waiting in late {
                self.hub.release(waiting.shared)
                waiting.entry.complete(.failure(.away))
            }
        }
    }

    /// Messages that the member published are still delivered to the others. Its reading resumes if it was paused.
    func leave(_ subscription: RoomSubscription) {
        self.loop.assertOnLoop()
        guard let subscriber = subscription.subscriber else { return }
        let room = subscription.room
        room.remove(subscription)
        let loops = room.shared.leave(
            onLoop: self.index, info: subscription.info, usesDeltas: subscription.usesDeltas, now: self.now)
        if room.isEmpty { self.rooms[room.name] = nil }
        self.takeDeferred(room)
        if self.hasArrivals { self.scheduleDelivery() }
        self.announce(loops, of: room)
        if let info = subscription.info { self.broker.left(room.shared, info) }
        self.hub.release(room.shared)
        if subscription.isPaused {
            subscription.isPaused = false
            subscriber.resumeReading()
        }
    }

    /// Publishes a member's message. Pauses the member's reading if the room is behind.
    /// - Parameters:
    ///   - subscription: of the publisher; `nil` if it is not a member.
    ///   - complete: called once, perhaps before this returns.
    func publish(
        _ message: RoomPublication, in shared: SharedRoom, by subscription: RoomSubscription?,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void
    ) {
        self.loop.assertOnLoop()
        var message = message
        if message.plain != nil, let subscription {
            message.origin = RoomMessage.Origin(loop: self.index, member: subscription.number)
        }
        let counters = subscription?.room.counters ?? self.hub.counters.of(shared.policy)
        self.broker.publish(message, in: shared) { result in
            if case .success(let published) = result, !published.isRepeated { counters.add(to: .publications) }
            complete(result)
        }
        guard let subscription else { return }
        if message.plain != nil, self.broker.isAway {
            subscription.waitsForBroker = true
            self.pausePublisher(subscription)
        }
        self.pauseIfBehind(subscription)
    }

    /// Queues the messages that a room has for its loops.
    func distribute(_ loops: [(loop: Int, cost: Int)], of shared: SharedRoom) {
        if let room = self.rooms[shared.name], room.shared === shared { return self.announce(loops, of: room) }
        self.hub.announce(shared, to: loops, from: nil)
    }

    /// The same for messages that the broker received.
    /// - Returns: whether all loops keep up. If not, `brokerCaughtUp` is called when they do.
    func distributeReceived(_ loops: [(loop: Int, cost: Int)], of shared: SharedRoom) -> Bool {
        self.hub.boundHistories()
        self.blockedFeed.formUnion(self.hub.announce(shared, to: loops, from: self.index))
        if let own = loops.first(where: { $0.loop == self.index }) { self.queueOwn(own.cost, of: shared) }
        return !self.isFeedBlocked
    }

    private var isFeedBlocked: Bool { !self.blockedFeed.isEmpty || self.pendingCost >= self.hub.buffers.undelivered }

    /// The broker accepts publications again.
    func brokerCaughtUp() { self.resumePublishers() }

    /// Stops reading from a member whose messages, or entries, come faster than the room delivers them.
    private func pauseIfBehind(_ subscription: RoomSubscription) {
        guard
            self.isBehind || !subscription.room.blockedLoops.isEmpty || self.pendingCost >= self.hub.buffers.undelivered
                || self.broker.isBehind
        else { return }
        self.pausePublisher(subscription)
    }

    private func announce(_ loops: [(loop: Int, cost: Int)], of room: LoopRoom) {
        guard !loops.isEmpty else { return }
        for target in self.hub.announce(room.shared, to: loops, from: self.index)
        where room.blockedLoops.insert(target).inserted {
            self.blockedRooms[target, default: []].append(room)
        }
        if let own = loops.first(where: { $0.loop == self.index }) { self.queueOwn(own.cost, of: room.shared) }
    }

    private func queueOwn(_ cost: Int, of shared: SharedRoom) {
        _ = self.hub.inboxes[self.index].add(shared, cost: cost, from: nil)
        self.pendingCost += cost
        self.hasArrivals = true
        self.scheduleDelivery()
    }

    private func pausePublisher(_ subscription: RoomSubscription) {
        guard !subscription.isPaused else { return }
        subscription.isPaused = true
        self.pausedMembers.append(subscription)
        subscription.subscriber?.pauseReading()
    }

    /// The member's output has space again.
    func outputProgressed(_ subscription: RoomSubscription) {
        guard subscription.state == .blocked, subscription.subscriber?.takesMore == true else { return }
        self.enqueue(subscription)
        self.scheduleDelivery()
    }

    // MARK: Other loops

    func messagesArrived() {
        self.hasArrivals = true
        self.scheduleDelivery()
    }

    /// The loop `target` has caught up.
    func drained(_ target: Int) {
        for room in self.blockedRooms.removeValue(forKey: target) ?? [] { room.blockedLoops.remove(target) }
        self.blockedFeed.remove(target)
        self.resumeFeed()
        self.resumePublishers()
    }

    // MARK: Delivery

    private func scheduleDelivery() {
        guard !self.isScheduled else { return }
        self.isScheduled = true
        self.loop.afterEvents(self)
    }

    private func work() {
        // Without a budget left, members that are ready would still be served before new messages are taken.
        self.takeArrivals()
        var hadNoneReady = self.ready.isEmpty
        while !self.loop.budgetIsSpent {
            if !self.ready.isEmpty {
                self.serveReady()
            } else if self.hasArrivals {
                self.takeArrivals()
            } else {
                break
            }
            hadNoneReady = hadNoneReady || self.ready.isEmpty
        }
        for room in self.servedRooms { room.countDeliveries() }
        self.servedRooms.removeAll(keepingCapacity: true)
        self.isBehind = !self.ready.isEmpty
        if hadNoneReady, !self.hasArrivals {
            self.pendingCost = 0
            self.resumeFeed()
            self.resumePublishers()
        }
        if self.isBehind || self.hasArrivals { self.scheduleDelivery() }
    }

    /// Takes messages of one room after another, until this turn's share is spent or members are ready.
    private func takeArrivals() {
        let inbox = self.hub.inboxes[self.index]
        while self.hasArrivals, !self.loop.budgetIsSpent, self.ready.count < 1024 {
            guard let shared = inbox.next() else {
                self.hasArrivals = false
                return
            }
            if let room = self.rooms[shared.name], room.shared === shared, room.isFull {
                // Its cost stays in the inbox, which pauses the publishers.
                room.hasArrivals = true
                continue
            }
            let taken = shared.take(forLoop: self.index, upTo: self.hub.buffers.taken)
            let woken = inbox.took(shared, cost: taken.cost, hasMore: taken.hasMore)
            if !woken.isEmpty { self.hub.wake(woken, for: self.index) }
            self.loop.spend(TurnBudget.frame * taken.messages.count)
            guard let room = self.rooms[shared.name], room.shared === shared else { continue }
            room.append(taken.messages)
            self.offer(room)
        }
    }

    /// Queues the room's members for delivery, and handles those that are too far behind.
    private func offer(_ room: LoopRoom) {
        var late: [RoomSubscription] = []
        var ready = self.takeReady()
        for subscription in room.subscriptions.values where room.hasMore(for: subscription) {
            switch subscription.state {
            case .idle:
                room.set(subscription, .ready)
                ready.append(subscription)
            case .ready: break
            case .blocked, .entering: if room.isTooFarBehind(subscription) { late.append(subscription) }
            }
        }
        self.ready = ready
        for subscription in late {
            // It is listed too late: its messages would use up the room's memory.
            subscription.state == .entering ? self.finishEntering(subscription) : self.fellBehind(subscription)
        }
        room.forgetUnusedBatches()
        room.trim()
    }

    /// Takes messages that arrived while the room was full.
    private func takeDeferred(_ room: LoopRoom) {
        guard room.hasArrivals, !room.hasReadyMembers else { return }
        room.hasArrivals = false
        _ = self.hub.inboxes[self.index].add(room.shared, cost: 0, from: nil)
        self.hasArrivals = true
    }

    private func fellBehind(_ subscription: RoomSubscription) {
        if let lost = subscription.room.skip(for: subscription) {
            subscription.room.counters.add(lost, to: .lost)
        } else {
            subscription.subscriber?.backlogExceeded(subscription)
        }
    }

    private func enqueue(_ subscription: RoomSubscription) {
        subscription.room.set(subscription, .ready)
        self.ready.append(subscription)
    }

    /// The queue as a value of the caller's own, which is to be put back: a change of it for each member costs less than a
    /// change of the property.
    private func takeReady() -> Deque<RoomSubscription> {
        defer { self.ready = [] }
        return self.ready
    }

    /// Serves the members that are ready, in their order, until the share of the turn is spent.
    private func serveReady() {
        var members = self.takeReady()
        while !self.loop.budgetIsSpent, let subscription = members.popFirst() { self.serve(subscription) }
        // Those that became ready meanwhile.
        members.append(contentsOf: self.ready)
        self.ready = members
    }

    /// Delivers the waiting messages to one member, as far as its output and the share of the turn allow.
    private func serve(_ subscription: RoomSubscription) {
        let room = subscription.room
        self.loop.spend(Self.visitWork)
        var left = Self.messagesPerVisit
        defer {
            if room.added(deliveries: Self.messagesPerVisit - left) { self.servedRooms.append(room) }
        }
        serving: while subscription.state == .ready, room.hasMore(for: subscription) {
            guard left > 0, !self.loop.budgetIsSpent else { return self.ready.append(subscription) }
            switch self.sendBatch(to: subscription) ?? self.deliverNext(to: subscription) {
            case .delivered(let count): left -= count
            case .isBehind: return self.block(subscription)
            case .hasNone: break serving
            }
        }
        if subscription.state == .ready { room.set(subscription, .idle) }
        self.takeDeferred(room)
    }

    private enum Delivery {
        case delivered(Int)
        /// The output takes no more.
        case isBehind
        /// The member has left, or no message is for it.
        case hasNone
    }

    /// - Returns: `nil` if the member gets its next message alone.
    private func sendBatch(to subscription: RoomSubscription) -> Delivery? {
        let room = subscription.room
        guard let output = subscription.batchOutput, let batch = room.batch(for: subscription) else { return nil }
        let frames = batch.frames(output.encoding, usesDeltas: subscription.usesDeltas)
        switch output.task.send(frames, isLast: room.isLast(batch), below: self.backlog.buffers.memberOutput) {
        case .sent:
            room.delivered(batch, to: subscription)
            self.loop.spend(TurnBudget.frame + batch.byteCount)
            return .delivered(batch.count)
        case .isBehind: return .isBehind
        case .needsOwnFrames: return nil
        }
    }

    // Not inlined: each batch would pay for its checks.
    @inline(never)
    private func deliverNext(to subscription: RoomSubscription) -> Delivery {
        let room = subscription.room
        guard let subscriber = subscription.subscriber else { return .hasNone }
        if room.skipsUnwanted(for: subscription) {
            self.loop.spend(Self.filterWork)
            return .delivered(0)
        }
        guard subscriber.takesMore else { return .isBehind }
        guard let message = room.take(for: subscription) else { return .hasNone }
        if case .interruption(let position) = message.message.content {
            if subscription.isPositioned { subscriber.interrupted(subscription, at: position) }
        } else {
            self.loop.spend(TurnBudget.frame + message.cost)
            subscriber.deliver(message, to: subscription)
        }
        return .delivered(1)
    }

    private func block(_ subscription: RoomSubscription) {
        subscription.room.set(subscription, .blocked)
        self.takeDeferred(subscription.room)
        if subscription.room.isTooFarBehind(subscription) { self.fellBehind(subscription) }
        if subscription.state == .blocked { subscription.subscriber?.awaitProgress() }
    }

    private func resumeFeed() {
        guard !self.isFeedBlocked else { return }
        self.broker.loopsCaughtUp()
    }

    /// Resumes paused publishers, except those whose room waits for another loop.
    private func resumePublishers() {
        guard !self.pausedMembers.isEmpty, !self.isBehind, !self.broker.isBehind else { return }
        let subscriptions = self.pausedMembers
        self.pausedMembers = []
        for subscription in subscriptions where subscription.isPaused {
            guard subscription.room.blockedLoops.isEmpty, !(subscription.waitsForBroker && self.broker.isAway) else {
                self.pausedMembers.append(subscription)
                continue
            }
            subscription.isPaused = false
            subscription.waitsForBroker = false
            subscription.subscriber?.resumeReading()
        }
    }

    private func makeBroker() -> any RoomBroker {
        guard let cluster = self.hub.cluster else { return LocalBroker(self) }
        let broker = RedisBroker(self, cluster)
        broker.start()
        return broker
    }

    // MARK: Lookup by loop

    /// The rooms of `loop`; `nil` without a gateway on it. Call on the loop.
    static func current(on loop: Loop) -> LoopRooms? {
        loop.local(LoopRoomsReference.self) { LoopRoomsReference() }.rooms
    }

    /// Makes these the rooms of their loop. Called on it, first of all.
    func register() {
        _ = self.broker
        self.loop.local(LoopRoomsReference.self) { LoopRoomsReference() }.rooms = self
    }
}

extension LoopRooms: EventsEndTarget {
    func eventsEnded() {
        self.isScheduled = false
        self.work()
    }
}

extension LoopRooms: TimerTarget {
    /// Removes rooms whose history has expired.
    func timerFired(_ timer: LoopTimer) {
        self.hub.sweep()
        if self.hub.roomCount > 0 { self.loop.arm(self.sweepTimer, after: Self.sweepInterval, target: self) }
    }
}

/// Weak reference that breaks the cycle between a loop and its rooms, which refer to all loops through the hub.
private final class LoopRoomsReference {
    weak var rooms: LoopRooms?
}
