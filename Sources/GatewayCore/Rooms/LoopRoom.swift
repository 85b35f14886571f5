import DequeModule
import Rooms
import SessionTasks

/// Receives the messages of rooms. One object may be in several.
protocol RoomSubscriber: AnyObject {
    /// Whether the output takes another message now. After `false`, the subscriber calls `LoopRooms.outputProgressed`
    /// for each of its subscriptions when it does again.
    var takesMore: Bool { get }
    /// Bytes queued in the subscriber's own output.
    var queuedBytes: Int { get }
    func deliver(_ message: LoopMessage, to subscription: RoomSubscription)
    /// Output of whole batches; `nil` if the subscriber takes each message alone. Asked when a subscription begins; see
    /// `updateBatchOutput`.
    var batchOutput: BatchOutput? { get }
    /// Requests a call of `LoopRooms.outputProgressed`.
    func awaitProgress()
    /// The subscription's backlog exceeds its limit, and the room's policy does not skip messages. It must leave.
    func backlogExceeded(_ subscription: RoomSubscription)
    /// Messages are missing before `position`, and the subscription is positioned: the client must subscribe again.
    func interrupted(_ subscription: RoomSubscription, at position: StreamPosition)
    /// The room accepts no more messages for now. The member may complete the message it has begun. Balanced by
    /// `resumeReading`.
    func pauseReading()
    func resumeReading()
}

extension RoomSubscriber {
    var batchOutput: BatchOutput? { nil }
}

/// A WebSocket to which batches of messages are sent without a call of the subscriber: a message to many members costs
/// mostly what it brings into the cache.
struct BatchOutput {
    let task: WebSocketTask
    /// `nil` for a member that speaks no protocol.
    let encoding: ProtocolEncoding?
}

/// A member's position in the messages of a room.
final class RoomSubscription {
    enum State {
        /// All messages are delivered.
        case idle
        /// Queued for delivery.
        case ready
        /// Its output is full.
        case blocked
        /// The member does not know yet that it is in the room: it waits until it is listed.
        case entering
    }

    // First what each delivery touches, so that it is in one cache line.
    let room: LoopRoom
    /// `nil` once the member has left.
    fileprivate(set) var subscriber: (any RoomSubscriber)?
    /// `nil` also once the member has left.
    fileprivate(set) var batchOutput: BatchOutput?
    /// Number of the next message to deliver.
    fileprivate(set) var next: UInt64
    let number: UInt64
    fileprivate(set) var state = State.idle
    /// A gap in its messages ends it: the client recovers what it missed.
    let isPositioned: Bool
    /// Publications are sent as differences to the one before.
    let usesDeltas: Bool
    /// Publications whose tags it does not match are left out; `nil` for none.
    let filter: TagFilter?
    /// Sequence number of the last publication that it got; kept for deltas alone.
    fileprivate(set) var deltaBase: UInt64?
    /// The member's reading is paused.
    var isPaused = false
    /// It is paused because a message of it waits for the broker.
    var waitsForBroker = false
    /// Messages of the room up to this number came before it.
    fileprivate let joinedAfter: UInt64
    /// As others see it; `nil` if the room does not list it.
    let info: ClientInfo?

    fileprivate init(
        _ number: UInt64, in room: LoopRoom, _ entry: LoopRooms.Entry, _ joined: SharedRoom.Membership, next: UInt64
    ) {
        self.number = number
        self.room = room
        self.subscriber = entry.member
        self.batchOutput = entry.member.batchOutput
        self.info = entry.info
        self.isPositioned = entry.isPositioned
        self.usesDeltas = entry.usesDeltas
        self.filter = entry.filter
        self.deltaBase = joined.deltaBase
        self.next = next
        self.joinedAfter = joined.sequence
    }

    /// For a subscriber that takes batches from now on.
    func updateBatchOutput() { self.batchOutput = self.subscriber?.batchOutput }

    /// The message for a member with deltas, which gets it now.
    func take(_ message: LoopMessage, _ encoding: ProtocolEncoding) -> SharedMessage {
        let made = message.encoded(encoding, after: self.deltaBase)
        if message.isPublication { self.deltaBase = message.message.sequence }
        return made
    }

    /// Whether this member receives the message: not if it joined later, or sent it without a protocol.
    fileprivate func receives(_ message: RoomMessage, onLoop loop: Int) -> Bool {
        message.sequence > self.joinedAfter && message.origin != RoomMessage.Origin(loop: loop, member: self.number)
    }
}

/// Bytes that the rooms of one loop keep for slow members, in total.
final class RoomBacklog {
    let buffers: RoomBuffers
    /// Total cost of the stored messages, in bytes.
    fileprivate(set) var cost = 0

    init(_ buffers: RoomBuffers) {
        self.buffers = buffers
    }

    /// Cost of the messages that may wait for one member, in bytes.
    var memberLimit: Int {
        self.cost > self.buffers.totalBacklog ? self.buffers.crowdedMemberBacklog : self.buffers.memberBacklog
    }
}

/// One loop's members of a room, and the messages not yet delivered to all of them. Each message is stored once.
final class LoopRoom {
    private struct Entry {
        let message: LoopMessage
        /// Cost of all messages up to and including this one.
        let end: UInt64
    }

    let shared: SharedRoom
    private let loop: Int
    private(set) var subscriptions: [UInt64: RoomSubscription] = [:]
    /// Loops that are behind with this room's messages.
    var blockedLoops: Set<Int> = []
    private var log: Deque<Entry> = []
    /// Messages in `log`, in its order. Empty when no member is ready: members that are behind get messages one by one,
    /// because frames of whole batches would be stored beside the messages.
    private var batches: [LoopBatch] = []
    /// The batch found last: most members get the same one after each other.
    private var lastBatch: LoopBatch?
    /// Number of the first message in `log`, and of the next one. The second is kept because each delivery needs it.
    private var first: UInt64 = 0
    private var nextNumber: UInt64 = 0
    /// Cost of all messages so far, and of those removed.
    private var end: UInt64 = 0
    private var forgotten: UInt64 = 0
    private let backlog: RoomBacklog
    /// Members that are not idle.
    private var pending = 0
    /// Members that are ready.
    private var readyCount = 0
    /// Cost of the messages added since no member was ready, in bytes.
    private var addedCost = 0
    /// The room was full when messages arrived: they are to be taken when no member is ready.
    var hasArrivals = false
    /// Length of `log` at which messages delivered to all members are removed.
    private var trimThreshold = LoopRoom.shortLog
    private static let shortLog = 64

    /// Of the policy that the room had when its first member came.
    let counters: PolicyCounters
    /// Not yet added to the counters.
    private var deliveries = 0

    init(_ shared: SharedRoom, loop: Int, _ backlog: RoomBacklog, _ counters: PolicyCounters) {
        self.counters = counters
        self.shared = shared
        self.loop = loop
        self.backlog = backlog
    }

    var name: String { self.shared.name }
    var isEmpty: Bool { self.subscriptions.isEmpty }
    var hasReadyMembers: Bool { self.readyCount > 0 }
    /// Members that are ready have enough to be served with.
    var isFull: Bool { self.readyCount > 0 && self.addedCost >= self.backlog.buffers.ready }

    // MARK: Members

    func add(_ entry: LoopRooms.Entry, _ joined: SharedRoom.Membership, number: UInt64) -> RoomSubscription {
        let subscription = RoomSubscription(number, in: self, entry, joined, next: self.nextNumber)
        self.subscriptions[number] = subscription
        return subscription
    }

    func remove(_ subscription: RoomSubscription) {
        self.subscriptions[subscription.number] = nil
        self.set(subscription, .idle)
        subscription.subscriber = nil
        subscription.batchOutput = nil
    }

    func set(_ subscription: RoomSubscription, _ state: RoomSubscription.State) {
        guard subscription.subscriber != nil else { return }
        if subscription.state == .idle, state != .idle { self.pending += 1 }
        if subscription.state != .idle, state == .idle { self.pending -= 1 }
        if subscription.state == .ready { self.readyCount -= 1 }
        if state == .ready { self.readyCount += 1 }
        if self.readyCount == 0 { self.noneIsReady() }
        subscription.state = state
        if self.pending == 0 { self.forget(self.log.count) }
    }

    // MARK: Messages

    /// - Returns: whether these are the first that are not added to the counters.
    func added(deliveries count: Int) -> Bool {
        defer { self.deliveries += count }
        return self.deliveries == 0 && count > 0
    }

    func countDeliveries() {
        self.counters.add(self.deliveries, to: .deliveries)
        self.deliveries = 0
    }

    /// Adds messages that came together.
    func append(_ messages: [RoomMessage]) {
        let start = self.nextNumber
        let messages = messages.map { LoopMessage($0, room: self.name) }
        for message in messages {
            self.end += UInt64(message.cost)
            self.addedCost += message.cost
            self.backlog.cost += message.cost
            self.log.append(Entry(message: message, end: self.end))
        }
        self.nextNumber += UInt64(messages.count)
        guard !messages.isEmpty, self.subscriptions.count > 1 else { return }
        let batch = LoopBatch(messages, start: start, loop: self.loop)
        // An interruption is not sent: it ends the subscriptions that must not miss anything.
        let isSent = !messages.contains(where: \.isInterruption)
        if isSent, batch.byteCount <= self.backlog.buffers.batch { self.batches.append(batch) }
    }

    /// The messages that the member gets together next; `nil` if it gets the next one alone.
    func batch(for subscription: RoomSubscription) -> LoopBatch? {
        guard let batch = self.batch(from: subscription.next),
            batch.isWhole(for: subscription.number, joinedAfter: subscription.joinedAfter),
            !subscription.usesDeltas || batch.continues(from: subscription.deltaBase),
            subscription.filter.map(batch.isWhole(for:)) ?? true
        else { return nil }
        return batch
    }

    private func batch(from number: UInt64) -> LoopBatch? {
        if let lastBatch, lastBatch.start == number { return lastBatch }
        let index = self.batches.partitionIndex { $0.start >= number }
        guard index < self.batches.count, self.batches[index].start == number else { return nil }
        self.lastBatch = self.batches[index]
        return self.lastBatch
    }

    /// Whether nothing follows the batch.
    func isLast(_ batch: LoopBatch) -> Bool { batch.end == self.nextNumber }

    /// The member got the batch.
    func delivered(_ batch: LoopBatch, to subscription: RoomSubscription) {
        subscription.next = batch.end
        if subscription.usesDeltas, let last = batch.lastPublication { subscription.deltaBase = last }
    }

    /// Forgets the batches of messages that no member is ready for.
    func forgetUnusedBatches() { if self.readyCount == 0 { self.noneIsReady() } }

    private func noneIsReady() {
        self.addedCost = 0
        self.lastBatch = nil
        if !self.batches.isEmpty { self.batches.removeAll(keepingCapacity: true) }
    }

    /// Returns the next message for this member and advances its position; `nil` if there is none.
    func take(for subscription: RoomSubscription) -> LoopMessage? {
        while subscription.next >= self.first, self.hasMore(for: subscription) {
            let entry = self.log[Int(subscription.next - self.first)]
            subscription.next += 1
            if subscription.receives(entry.message.message, onLoop: self.loop) { return entry.message }
        }
        return nil
    }

    /// Advances a member with a filter beyond the next message if it is not for the member, or a publication that the filter
    /// leaves out. `take` must not go on to a message that was not compared with the filter.
    /// - Returns: whether it is.
    func skipsUnwanted(for subscription: RoomSubscription) -> Bool {
        guard let filter = subscription.filter, subscription.next >= self.first, self.hasMore(for: subscription) else {
            return false
        }
        let message = self.log[Int(subscription.next - self.first)].message.message
        let isReceived = subscription.receives(message, onLoop: self.loop)
        if isReceived, message.isWanted(by: filter) { return false }
        subscription.next += 1
        if isReceived { self.counters.add(to: .filtered) }
        return true
    }

    func hasMore(for subscription: RoomSubscription) -> Bool {
        subscription.next < self.nextNumber
    }

    /// Cost of the messages not yet delivered to the member.
    func backlog(of subscription: RoomSubscription) -> Int {
        guard self.hasMore(for: subscription), subscription.next >= self.first else { return 0 }
        let entry = self.log[Int(subscription.next - self.first)]
        return Int(self.end - entry.end) + entry.message.cost
    }

    func isTooFarBehind(_ subscription: RoomSubscription) -> Bool {
        self.backlog(of: subscription) + (subscription.subscriber?.queuedBytes ?? 0) > self.backlog.memberLimit
    }

    /// Skips messages of a member that is too far behind, as the room's policy says.
    /// - Returns: how many were skipped; `nil` if the policy does not skip, or the member must not miss any.
    func skip(for subscription: RoomSubscription) -> Int? {
        guard !subscription.isPositioned else { return nil }
        let start = subscription.next
        switch self.shared.policy.slowReaders {
        case .disconnect: return nil
        case .dropOldest:
            while self.backlog(of: subscription) > self.backlog.memberLimit / 2 { subscription.next += 1 }
        case .skipToLatest:
            subscription.next = max(start, self.first + UInt64(max(0, self.log.count - 1)))
        }
        return Int(subscription.next - start)
    }

    /// Removes the messages delivered to all members.
    func trim() {
        guard self.log.count >= self.trimThreshold else { return }
        let least = self.subscriptions.values.reduce(self.nextNumber) { min($0, $1.next) }
        self.forget(Int(least - self.first))
        self.trimThreshold = max(Self.shortLog, self.log.count * 2)
    }

    private func forget(_ count: Int) {
        guard count > 0, count <= self.log.count else { return }
        let end = self.log[count - 1].end
        self.backlog.cost -= Int(end - self.forgotten)
        self.forgotten = end
        self.first += UInt64(count)
        if count == self.log.count { self.log = [] } else { self.log.removeFirst(count) }
    }
}
