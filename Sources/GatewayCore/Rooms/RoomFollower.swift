import DequeModule
import Rooms
import StreamTransport
import Synchronization

/// Reads what happens in a room, for a client of the control plane. Messages that it does not read in time wait in the room,
/// as for other members; a follower that falls too far behind ends.
package final class RoomFollower: Sendable {
    package enum Event: Sendable, Equatable {
        /// Publications between the requested position and this one are missing.
        case gap(StreamPosition)
        /// - Parameter epoch: of the stream that its offset belongs to; empty if the room keeps no history.
        case publication(Publication, epoch: String)
        /// All publications up to this position were delivered; new ones follow.
        case following(StreamPosition)
        case joined(ClientInfo)
        case left(ClientInfo)
        /// The follower fell too far behind. The last event.
        case tooSlow
    }

    private let queue: FollowerQueue

    init(_ queue: FollowerQueue) {
        self.queue = queue
    }

    deinit {
        self.queue.stop()
    }

    /// Waits for events.
    /// - Returns: `nil` after the last ones and after `stop`, or when the wait is cancelled.
    package func next() async -> [Event]? { await self.queue.next() }

    /// Whether `next` returns nothing any more.
    package var isOver: Bool { self.queue.isOver }

    /// Leaves the room.
    package func stop() { self.queue.stop() }
}

/// Passes events from a member's loop to its reader.
package final class FollowerQueue: Sendable {
    /// The member, from any thread.
    package struct Member: Sendable {
        /// The queue takes more.
        let progressed: @Sendable () -> Void
        /// The reader has gone.
        let stopped: @Sendable () -> Void

        package init(progressed: @escaping @Sendable () -> Void, stopped: @escaping @Sendable () -> Void) {
            self.progressed = progressed
            self.stopped = stopped
        }
    }

    /// Bytes above which messages stay in the room.
    private static let watermark = 256 << 10
    /// Cost of an event besides its data, in bytes.
    private static let overhead = 128

    private struct State {
        var events: Deque<RoomFollower.Event> = []
        var cost = 0
        var isOver = false
        /// The member waits for space.
        var isBlocked = false
        var waiting: CheckedContinuation<Void, Never>?
        var member: Member?
    }

    private let state = Mutex(State())

    package init() {}

    package var takesMore: Bool { self.state.withLock { $0.cost < Self.watermark } }
    var queuedBytes: Int { self.state.withLock(\.cost) }
    var isOver: Bool { self.state.withLock { $0.isOver && $0.events.isEmpty } }

    package func begin(_ member: Member) { self.state.withLock { $0.member = member } }

    /// Requests a call of the member when the queue takes more: at once if the reader has taken events since the member
    /// found it full.
    package func awaitProgress() {
        let member = self.state.withLock { state -> Member? in
            state.isBlocked = state.cost >= Self.watermark
            return state.isBlocked ? nil : state.member
        }
        member?.progressed()
    }

    package func add(_ event: RoomFollower.Event) {
        self.change { state in
            guard !state.isOver else { return }
            state.events.append(event)
            state.cost += Self.overhead
            if case .publication(let publication, _) = event { state.cost += publication.data.bytes.count }
        }
    }

    func finish(with last: RoomFollower.Event) {
        self.add(last)
        self.change { state in
            state.isOver = true
            state.member = nil
        }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let waiting = self.state.withLock { state in
            body(&state)
            return state.waiting.take()
        }
        waiting?.resume()
    }

    /// The reader has gone.
    func stop() {
        let (member, waiting) = self.state.withLock { state in
            state.isOver = true
            return (state.member.take(), state.waiting.take())
        }
        waiting?.resume()
        member?.stopped()
    }

    package func next() async -> [RoomFollower.Event]? {
        while !Task.isCancelled {
            let (events, isOver, blocked) = self.state.withLock { state in
                let events = Array(state.events)
                state.events = []
                state.cost = 0
                defer { state.isBlocked = false }
                return (events, state.isOver, state.isBlocked ? state.member : nil)
            }
            blocked?.progressed()
            if !events.isEmpty { return events }
            if isOver { return nil }
            await self.wait()
        }
        return nil
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = !state.events.isEmpty || state.isOver || Task.isCancelled
                    if !isDone { state.waiting = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.take() }?.resume()
        }
    }
}

/// A follower's member of the room, on its loop. Others do not see it.
final class FollowingMember {
    /// Publications of the history that come before new ones.
    static let historyLimit = 10_000

    private let queue: FollowerQueue
    private let rooms: LoopRooms
    private var subscription: RoomSubscription?
    private var epoch = ""
    /// The history is queued; before, messages wait in the room.
    private var hasBegun = false

    init(_ queue: FollowerQueue, rooms: LoopRooms) {
        self.queue = queue
        self.rooms = rooms
    }

    /// - Parameter complete: with whether the room takes another member.
    func join(
        _ room: String, after position: StreamPosition?, last: Int, _ complete: @escaping (Bool) -> Void
    ) {
        let entry = LoopRooms.Entry(member: self, info: nil, isPositioned: true) { [self] result in
            guard case .success(let joined) = result else { return complete(false) }
            self.subscription = joined.subscription
            let member = LoopIsolated(self, on: self.rooms.loop)
            self.queue.begin(
                FollowerQueue.Member(
                    progressed: { member.execute { $0.outputProgressed() } }, stopped: { member.execute { $0.leave() } }
                ))
            // Messages that arrive during the request wait in the room, and follow the history.
            self.requestHistory(joined.subscription.room.shared, joined.result.position, position, last)
            complete(true)
        }
        self.rooms.join(room, entry)
    }

    private func requestHistory(
        _ room: SharedRoom, _ newest: StreamPosition, _ position: StreamPosition?, _ last: Int
    ) {
        var request = Command.HistoryRequest()
        request.channel = room.name
        request.limit = position == nil ? min(last, Self.historyLimit) : Self.historyLimit
        request.isReversed = true
        self.rooms.broker.history(of: room, request, while: { [self] in self.subscription != nil }) { [self] result in
            let page = try? result.get()
            // Redis may have begun another epoch meanwhile, of which the room hears next.
            let found = page?.position.epoch == newest.epoch ? page?.publications ?? [] : []
            self.begin(found, at: newest, after: position)
            self.hasBegun = true
            self.outputProgressed()
        }
    }

    /// Queues publications of the history. Those published from now on are delivered as to all members.
    /// - Parameter found: the newest first.
    private func begin(_ found: [Publication], at newest: StreamPosition, after position: StreamPosition?) {
        self.epoch = newest.epoch
        let isSameStream = position.map { $0.epoch == newest.epoch || $0.epoch.isEmpty && $0.offset == 0 } ?? true
        // Of another stream, everything is new.
        let start = isSameStream ? position?.offset ?? 0 : 0
        let publications = found.reversed().filter { $0.offset > start && $0.offset <= newest.offset }
        let isComplete =
            position == nil
            || isSameStream && start <= newest.offset && UInt64(publications.count) == newest.offset - start
        if !isComplete { self.queue.add(.gap(newest)) }
        for publication in publications { self.queue.add(.publication(publication, epoch: newest.epoch)) }
        self.queue.add(.following(newest))
    }

    func leave() {
        guard let subscription = self.subscription.take() else { return }
        self.rooms.leave(subscription)
    }

    func outputProgressed() {
        if let subscription = self.subscription { self.rooms.outputProgressed(subscription) }
    }
}

extension FollowingMember: RoomSubscriber {
    var takesMore: Bool { self.hasBegun && self.queue.takesMore }
    var queuedBytes: Int { self.queue.queuedBytes }

    func deliver(_ message: LoopMessage, to subscription: RoomSubscription) {
        switch message.push {
        case .publication(let publication), .publicationOfDeltas(let publication, _):
            self.queue.add(.publication(publication, epoch: self.epoch))
        case .join(let info): self.queue.add(.joined(info))
        case .leave(let info): self.queue.add(.left(info))
        case .unsubscribe, .subscribe, .message, .connect, .disconnect, .refresh: break
        }
    }

    func awaitProgress() { if self.hasBegun { self.queue.awaitProgress() } }

    /// The reader continues after the position, and knows that some are missing.
    func interrupted(_ subscription: RoomSubscription, at position: StreamPosition) {
        self.epoch = position.epoch
        self.queue.add(.gap(position))
    }

    func backlogExceeded(_ subscription: RoomSubscription) {
        self.leave()
        self.queue.finish(with: .tooSlow)
    }

    // It publishes nothing.
    func pauseReading() {}
    func resumeReading() {}
}
