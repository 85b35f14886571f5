import DequeModule
import StreamTransport

/// One loop's part of the rooms: its own members.
///
/// Messages are delivered at the end of the event, to each member all at once. Deliveries beyond the event's share of
/// the turn (`TurnBudget`) follow in the next turns. While this loop, or another with members of the room, is behind,
/// members that publish are not read.
final class LoopRooms {
    /// To visit a member is to send to it: so many units of `TurnBudget`.
    private static let visitWork = 8192
    /// Messages that a member is given before it is the next one's turn.
    private static let messagesPerVisit = 512
    /// Cost of messages between two deliveries, in bytes, above which publishers are paused.
    private static let pendingCostLimit = 256 << 10
    /// Taken at once of what another loop hands over, in the same bytes.
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
    /// Members with messages to be given.
    private var ready: Deque<ChatSubscription> = []
    /// Loops that handed messages over.
    private var arrivals: Deque<Int> = []
    /// Members whose reading is paused.
    private var pausedMembers: [ChatSubscription] = []
    /// Rooms whose messages another loop is behind with, by loop.
    private var blockedRooms: [Int: [ChatRoom]] = [:]

    /// Members wait for the next turn.
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
        let room = self.rooms[name] ?? ChatRoom(name, self.backlog)
        self.rooms[name] = room
        self.lastNumber += 1
        self.hub.joined(name, onLoop: self.index)
        return room.add(member, number: self.lastNumber)
    }

    /// The member's own messages still go to the others; if its reading was paused, it resumes.
    func leave(_ subscription: ChatSubscription) {
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

    /// Gives a member's message to everyone else in its room. The member's reading is paused if the room is behind.
    func publish(_ message: ChatMessage, by subscription: ChatSubscription) {
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

    /// The member's output takes more again.
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

    /// That loop has taken enough of what this one handed over.
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

    // MARK: Work

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

    // MARK: Place

    /// The rooms of the loop that the caller is on; `nil` while the gateway has none.
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

/// Where a loop finds its rooms, which the gateway's part on that loop keeps: a rooms leads back to all loops.
private final class LoopRoomsReference {
    weak var rooms: LoopRooms?
}
