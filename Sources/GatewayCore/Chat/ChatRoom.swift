import DequeModule
import WebSocketProtocol

/// Receives the messages of a chat room.
protocol ChatSubscriber: AnyObject {
    /// Whether the output takes another message now. After `false`, the subscriber calls `LoopRooms.outputProgressed`
    /// when it does again.
    var takesMore: Bool { get }
    /// Bytes queued in the subscriber's own output.
    var queuedBytes: Int { get }
    /// Delivers a message of another member.
    func deliver(_ message: ChatMessage)
    /// Requests a call of `LoopRooms.outputProgressed`.
    func awaitProgress()
    /// The member's backlog exceeds `ChatRoom.backlogLimit`. It must leave.
    func backlogExceeded()
    /// The room accepts no more messages for now. The member may complete the message it has begun.
    func pauseReading()
    func resumeReading()
}

/// A member's position in the messages of a room.
final class ChatSubscription {
    enum State {
        /// All messages are delivered.
        case idle
        /// Queued for delivery.
        case ready
        /// Its output is full.
        case blocked
    }

    let number: UInt64
    let room: ChatRoom
    /// `nil` once the member has left.
    fileprivate(set) var subscriber: (any ChatSubscriber)?
    fileprivate(set) var state = State.idle
    /// Number of the next message to deliver.
    fileprivate(set) var next: UInt64
    /// The member's reading is paused.
    var isPaused = false

    fileprivate init(_ number: UInt64, in room: ChatRoom, _ subscriber: any ChatSubscriber, next: UInt64) {
        self.number = number
        self.room = room
        self.subscriber = subscriber
        self.next = next
    }
}

/// Bytes that the rooms of one loop keep for slow members, in total.
final class ChatBacklog {
    /// In bytes. Above it, members that are behind are removed much sooner.
    let limit: Int
    /// Total cost of the stored messages, in bytes.
    fileprivate(set) var cost = 0

    init(limit: Int) {
        self.limit = limit
    }
}

/// One loop's members of a room, and the messages not yet delivered to all of them. Each message is stored once.
final class ChatRoom {
    struct Entry {
        let message: ChatMessage
        let publisher: UInt64
        /// Cost of all messages up to and including this one.
        let end: UInt64
    }

    /// Bytes that may wait for a member whose output is full; a member further behind is removed, so that it does not
    /// hold up the room.
    static let backlogLimit = 4 << 20
    /// Bytes queued in a member's connection above which messages stay in the room, stored once for all members.
    static let outputWatermark = 64 << 10
    /// Replaces `backlogLimit` while the rooms of the loop together exceed theirs.
    private static let sharedBacklogLimit = 256 << 10

    let name: String
    private(set) var subscriptions: [UInt64: ChatSubscription] = [:]
    /// The room is listed for delivery.
    var hasPendingMessages = false
    /// Loops whose channel is full of this room's messages.
    var blockedLoops: Set<Int> = []
    /// Messages of this loop's members not yet forwarded to other loops.
    private var outgoing: [ChatMessage] = []
    private var log: Deque<Entry> = []
    /// Number of the first message in `log`.
    private var first: UInt64 = 0
    /// Cost of all messages so far, and of those removed.
    private var end: UInt64 = 0
    private var forgotten: UInt64 = 0
    private let backlog: ChatBacklog
    /// Members that are not idle.
    private var pending = 0
    /// Length of `log` at which messages delivered to all members are removed.
    private var trimThreshold = ChatRoom.shortLog
    private static let shortLog = 64

    init(_ name: String, _ backlog: ChatBacklog) {
        self.name = name
        self.backlog = backlog
    }

    var isEmpty: Bool { self.subscriptions.isEmpty }

    /// Messages not yet delivered to all members.
    private var messageCount: Int { self.log.count }

    // MARK: Members

    func add(_ subscriber: any ChatSubscriber, number: UInt64) -> ChatSubscription {
        let subscription = ChatSubscription(number, in: self, subscriber, next: self.first + UInt64(self.log.count))
        self.subscriptions[number] = subscription
        return subscription
    }

    func remove(_ subscription: ChatSubscription) {
        self.subscriptions[subscription.number] = nil
        self.set(subscription, .idle)
        subscription.subscriber = nil
    }

    func set(_ subscription: ChatSubscription, _ state: ChatSubscription.State) {
        guard subscription.subscriber != nil else { return }
        if subscription.state == .idle, state != .idle { self.pending += 1 }
        if subscription.state != .idle, state == .idle { self.pending -= 1 }
        subscription.state = state
        if self.pending == 0 { self.forget(self.log.count) }
    }

    // MARK: Messages

    /// - Parameter publisher: number of the member that sent it, to which it is not delivered; 0 for a member on another
    ///   loop.
    func append(_ message: ChatMessage, from publisher: UInt64) {
        self.end += UInt64(message.cost)
        self.backlog.cost += message.cost
        self.log.append(Entry(message: message, publisher: publisher, end: self.end))
        if publisher != 0 { self.outgoing.append(message) }
    }

    func takeOutgoing() -> [ChatMessage] {
        defer { self.outgoing = [] }
        return self.outgoing
    }

    /// Returns the next message for this member and advances its position; `nil` if there is none.
    func take(for subscription: ChatSubscription) -> Entry? {
        guard subscription.next >= self.first, subscription.next - self.first < UInt64(self.log.count) else {
            return nil
        }
        let entry = self.log[Int(subscription.next - self.first)]
        subscription.next += 1
        return entry
    }

    func hasMore(for subscription: ChatSubscription) -> Bool {
        subscription.next < self.first + UInt64(self.log.count)
    }

    /// Cost of the messages not yet delivered to the member.
    func backlog(of subscription: ChatSubscription) -> Int {
        guard self.hasMore(for: subscription), subscription.next >= self.first else { return 0 }
        let entry = self.log[Int(subscription.next - self.first)]
        return Int(self.end - entry.end) + entry.message.cost
    }

    func isTooFarBehind(_ subscription: ChatSubscription) -> Bool {
        let limit = self.backlog.cost > self.backlog.limit ? Self.sharedBacklogLimit : Self.backlogLimit
        return self.backlog(of: subscription) + (subscription.subscriber?.queuedBytes ?? 0) > limit
    }

    /// Removes the messages delivered to all members.
    func trim() {
        guard self.log.count >= self.trimThreshold else { return }
        let least = self.subscriptions.values.reduce(self.first + UInt64(self.log.count)) { min($0, $1.next) }
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

/// A message published in a room. All loops and members share its bytes.
package struct ChatMessage: Sendable {
    /// Memory of a message in all queues together, without its bytes.
    private static let overhead = 128

    package let kind: MessageKind
    package let bytes: [UInt8]

    /// Cost of the message in limits, in bytes, so that one limit bounds both large and empty messages.
    package var cost: Int { self.bytes.count + Self.overhead }

    package init(kind: MessageKind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }
}
