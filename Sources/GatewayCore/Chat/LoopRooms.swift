import DequeModule
import StreamTransport

/// The members of all rooms on one loop.
///
/// Messages are delivered at the end of the event, to each member all at once. Deliveries beyond the event's share of
/// the turn (`TurnBudget`) follow in the next turns. While this loop, or another with members of the room, is behind,
/// members that publish are not read.
final class LoopRooms {
    /// Cost of delivering to one member, in units of `TurnBudget`.
    private static let visitWork = 8192
    /// Messages delivered to one member before the next one is served.
    private static let messagesPerVisit = 512
    /// Cost of messages between two deliveries, in bytes, above which publishers are paused.
    private static let pendingCostLimit = 256 << 10
    /// Cost of the messages taken from another loop at once, in bytes.
    private static let arrivalBatchLimit = 64 << 10

    private let hub: ChatHub
    private let index: Int
    private let loop: Loop
    private var rooms: [String: ChatRoom] = [:]
    private let backlog: ChatBacklog
    private var lastNumber: UInt64 = 0

    /// Rooms with undelivered messages.
    private var pendingRooms: [ChatRoom] = []
    private var pendingCost = 0
    /// Members with undelivered messages whose output has space.
    private var ready: Deque<ChatSubscription> = []
    /// Loops that forwarded messages to this one.
    private var arrivals: Deque<Int> = []
    /// Members whose reading is paused.
    private var pausedMembers: [ChatSubscription] = []
    /// Rooms whose messages fill the channel to another loop, by that loop.
    private var blockedRooms: [Int: [ChatRoom]] = [:]

    /// Some members are still ready after the turn's budget is spent.
    private var isBehind = false
    private var awaitsTurnEnd = false
    private var awaitsNextTurn = false

    init(hub: ChatHub, loop: Loop, loopIndex: Int) {
        self.hub = hub
        self.loop = loop
        self.index = loopIndex
        self.backlog = ChatBacklog(limit: hub.backlogLimit)
    }

    // MARK: Members

    func join(_ member: any ChatSubscriber, room name: String) -> ChatSubscription {
        self.loop.assertOnLoop()
        let room = self.rooms[name] ?? ChatRoom(name, self.backlog)
        self.rooms[name] = room
        self.lastNumber += 1
        self.hub.joined(name, onLoop: self.index)
        return room.add(member, number: self.lastNumber)
    }

    /// Messages that the member published are still delivered to the others. Its reading resumes if it was paused.
    func leave(_ subscription: ChatSubscription) {
        self.loop.assertOnLoop()
        guard let subscriber = subscription.subscriber else { return }
        let room = subscription.room
        room.remove(subscription)
        if room.isEmpty { self.rooms[room.name] = nil }
        self.hub.left(room.name, onLoop: self.index)
        if subscription.isPaused {
            subscription.isPaused = false
            subscriber.resumeReading()
        }
    }

    /// Sends a member's message to all others in its room. Pauses the member's reading if the room is behind.
    func publish(_ message: ChatMessage, by subscription: ChatSubscription) {
        self.loop.assertOnLoop()
        guard subscription.subscriber != nil else { return }
        let room = subscription.room
        room.append(message, from: subscription.number)
        self.pendingCost += message.cost
        self.markPending(room)
        if self.isBehind || !room.blockedLoops.isEmpty || self.pendingCost >= Self.pendingCostLimit {
            self.pausePublisher(subscription)
        }
    }

    private func pausePublisher(_ subscription: ChatSubscription) {
        guard !subscription.isPaused else { return }
        subscription.isPaused = true
        self.pausedMembers.append(subscription)
        subscription.subscriber?.pauseReading()
    }

    /// The member's output has space again.
    func outputProgressed(_ subscription: ChatSubscription) {
        guard subscription.state == .blocked, subscription.subscriber?.takesMore == true else { return }
        self.enqueue(subscription)
        self.scheduleDelivery()
    }

    // MARK: Other loops

    func messagesArrived(from origin: Int) {
        self.arrivals.append(origin)
        self.scheduleDelivery()
    }

    /// The channel to `target` has space again.
    func drained(_ target: Int) {
        for room in self.blockedRooms.removeValue(forKey: target) ?? [] { room.blockedLoops.remove(target) }
        self.resumePublishers()
    }

    private func forward(_ room: ChatRoom) {
        let messages = room.takeOutgoing()
        guard !messages.isEmpty else { return }
        for target in self.hub.forward(messages, to: room.name, from: self.index)
        where room.blockedLoops.insert(target).inserted {
            self.blockedRooms[target, default: []].append(room)
        }
    }

    // MARK: Delivery

    private func markPending(_ room: ChatRoom) {
        if !room.hasPendingMessages { self.pendingRooms.append(room) }
        room.hasPendingMessages = true
        self.scheduleDelivery()
    }

    private func scheduleDelivery() {
        guard !self.awaitsTurnEnd else { return }
        self.awaitsTurnEnd = true
        self.loop.atTurnEnd(self)
    }

    private func work() {
        self.deliverPending()
        var hadNoneReady = self.ready.isEmpty
        while !self.loop.budgetIsSpent {
            if let subscription = self.ready.popFirst() {
                self.serve(subscription)
            } else if let origin = self.arrivals.popFirst() {
                self.receive(from: origin)
            } else {
                break
            }
            hadNoneReady = hadNoneReady || self.ready.isEmpty
        }
        self.isBehind = !self.ready.isEmpty
        if hadNoneReady { self.resumePublishers() }
        if self.isBehind || !self.arrivals.isEmpty { self.scheduleForNextTurn() }
    }

    private func scheduleForNextTurn() {
        guard !self.awaitsNextTurn else { return }
        self.awaitsNextTurn = true
        self.loop.inNextTurn(self)
    }

    private func deliverPending() {
        guard !self.pendingRooms.isEmpty else { return }
        let rooms = self.pendingRooms
        self.pendingRooms = []
        self.pendingCost = 0
        for room in rooms {
            room.hasPendingMessages = false
            self.forward(room)
            self.offer(room)
        }
    }

    /// Queues the room's members for delivery, and removes those that are too far behind.
    private func offer(_ room: ChatRoom) {
        var late: [ChatSubscription] = []
        for subscription in room.subscriptions.values where room.hasMore(for: subscription) {
            switch subscription.state {
            case .idle: self.enqueue(subscription)
            case .ready: break
            case .blocked: if room.isTooFarBehind(subscription) { late.append(subscription) }
            }
        }
        for subscription in late { subscription.subscriber?.backlogExceeded() }
        room.trim()
    }

    private func enqueue(_ subscription: ChatSubscription) {
        subscription.room.set(subscription, .ready)
        self.ready.append(subscription)
    }

    /// Delivers the waiting messages to one member, as far as its output and the share of the turn allow.
    private func serve(_ subscription: ChatSubscription) {
        let room = subscription.room
        self.loop.spend(Self.visitWork)
        var left = Self.messagesPerVisit
        while subscription.state == .ready, let subscriber = subscription.subscriber, room.hasMore(for: subscription) {
            guard left > 0, !self.loop.budgetIsSpent else { return self.ready.append(subscription) }
            guard subscriber.takesMore else { return self.block(subscription, subscriber) }
            guard let entry = room.take(for: subscription) else { break }
            left -= 1
            guard entry.publisher != subscription.number else { continue }
            self.loop.spend(TurnBudget.frame + entry.message.bytes.count)
            subscriber.deliver(entry.message)
        }
        if subscription.state == .ready { room.set(subscription, .idle) }
    }

    private func block(_ subscription: ChatSubscription, _ subscriber: any ChatSubscriber) {
        subscription.room.set(subscription, .blocked)
        if subscription.room.isTooFarBehind(subscription) { return subscriber.backlogExceeded() }
        subscriber.awaitProgress()
    }

    private func receive(from origin: Int) {
        let batch = self.hub.take(from: origin, to: self.index, upTo: Self.arrivalBatchLimit)
        if batch.hasMore { self.arrivals.append(origin) }
        self.loop.spend(TurnBudget.frame * batch.messages.count)
        var touched: [ChatRoom] = []
        for (name, message) in batch.messages {
            guard let room = self.rooms[name] else { continue }
            room.append(message, from: 0)
            if touched.last !== room { touched.append(room) }
        }
        for room in touched { self.offer(room) }
    }

    /// Resumes paused publishers, except those whose room waits for another loop.
    private func resumePublishers() {
        guard !self.pausedMembers.isEmpty, !self.isBehind else { return }
        let subscriptions = self.pausedMembers
        self.pausedMembers = []
        for subscription in subscriptions where subscription.isPaused {
            guard subscription.room.blockedLoops.isEmpty else {
                self.pausedMembers.append(subscription)
                continue
            }
            subscription.isPaused = false
            subscription.subscriber?.resumeReading()
        }
    }

    // MARK: Lookup by loop

    /// The rooms of `loop`; `nil` without a gateway on it. Call on the loop.
    static func current(on loop: Loop) -> LoopRooms? {
        loop.local(LoopRoomsReference.self) { LoopRoomsReference() }.rooms
    }

    func register() {
        self.loop.local(LoopRoomsReference.self) { LoopRoomsReference() }.rooms = self
    }
}

extension LoopRooms: TurnEndTarget {
    func turnEnded() {
        self.awaitsTurnEnd = false
        self.work()
    }

    func nextTurnBegan() {
        self.awaitsNextTurn = false
        self.work()
    }
}

/// Weak reference that breaks the cycle between a loop and its rooms, which refer to all loops through the hub.
private final class LoopRoomsReference {
    weak var rooms: LoopRooms?
}
