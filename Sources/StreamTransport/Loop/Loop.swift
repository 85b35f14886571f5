import ByteKernels
import DequeModule
import Synchronization

/// Event loop of one thread: waits until a descriptor is ready, calls its watcher, sends the written bytes, and repeats.
///
/// Everything on a loop happens on the thread that runs it; only `execute`, `stop`, `isCurrent` and the executor's
/// `enqueue` may be called from elsewhere. Debug builds check this (`assertOnLoop`) wherever another thread could come
/// in by mistake; `LoopIsolated` carries what belongs to a loop through code that runs elsewhere.
///
/// A turn handles each ready descriptor once, with a share of the turn's work (`TurnBudget`), so no connection delays
/// the others by more than that.
package final class Loop: @unchecked Sendable {  // What other threads call uses atomics and the inbox only.
    /// Bytes read from a socket in one call at most.
    package static let receiveCapacity = 256 << 10
    /// Inbox entries run in one turn; others wait for the next turn, after the descriptors that are ready then.
    package static let inboxShare = 64

    package let system: any System
    /// In nanoseconds. Atomic because it is read for every message, from other modules: so it is read by a plain load.
    @usableFromInline let turnBegan: Atomic<Int64>
    /// Remaining work of the current share. Atomic for the same reason.
    @usableFromInline let workLeft = Atomic<Int>(TurnBudget.share)
    /// Lent to consumers during `bytesReceived`; nothing in it outlives the call.
    let receiveBuffer = SharedBuffer(capacity: Loop.receiveCapacity)
    let writeBuffer = LoopWriteBuffer()
    /// As the system says.
    let spliceThreshold: Int

    let userTimeoutSweep = UserTimeoutSweep()
    private var events = ReadyEvents()
    private var table = WatchTable()
    private var timers = TimerQueue()
    private var turnEnds: [any TurnEndTarget] = []
    /// Empty: replaces `turnEnds` while its targets are called.
    private var turnEndsInProgress: [any TurnEndTarget] = []
    /// Beside the array because it is asked after every event.
    private var turnEndCount = 0
    private var nextTurn: Deque<any TurnEndTarget> = []
    private var afterAllEvents: Deque<any EventsEndTarget> = []
    private var budget = TurnBudget()
    private var locals = LoopObjects()
    private var spareBuffers: [[UInt8]] = []
    private let inbox = LoopInbox()
    private let slowTurns = SlowTurns()
    private let runner = Atomic<UInt>(0)
    private let stopping = Atomic<Bool>(false)

    package init(system: any System) {
        self.system = system
        self.spliceThreshold = system.spliceThreshold
        self.turnBegan = Atomic(system.now().nanoseconds)
    }

    /// The time at which the current turn began to act.
    @inlinable package var now: MonotonicInstant {
        MonotonicInstant(nanoseconds: self.turnBegan.load(ordering: .relaxed))
    }

    // MARK: From any thread

    /// Runs `work` on the loop, in the order of the calls, in this or the next turn.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        if self.inbox.add(.closure(work)), !self.isCurrent { self.system.wake() }
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool {
        self.runner.load(ordering: .relaxed) == SystemThread.current
    }

    /// For `assertOnLoop`. A running loop is between its turns only for an instant, so a mistake is found soon.
    @usableFromInline var admitsCaller: Bool {
        let runner = self.runner.load(ordering: .relaxed)
        return runner == 0 || runner == SystemThread.current
    }

    /// Turns whose work took longer than 5 ms.
    package var slowTurnCount: UInt64 { self.slowTurns.count }

    /// Ends `run` after the current turn. Connections are left as they are.
    package func stop() {
        self.stopping.store(true, ordering: .releasing)
        self.system.wake()
    }

    func add(_ job: UnownedJob) {
        if self.inbox.add(.job(job)), !self.isCurrent { self.system.wake() }
    }

    // MARK: Running

    /// Takes turns on the calling thread until `stop`.
    package func run() {
        while !self.stopping.load(ordering: .acquiring) { self.turn() }
        self.stopping.store(false, ordering: .releasing)
    }

    /// Runs one turn: waits for the next event or deadline, then handles everything ready or due.
    package func turn() {
        self.runner.store(SystemThread.current, ordering: .relaxed)
        let hasWork = !self.nextTurn.isEmpty || !self.afterAllEvents.isEmpty || !self.inbox.isEmpty
        self.system.wait(&self.events, until: hasWork ? self.now : self.timers.nextDeadline)
        self.turnBegan.store(self.system.now().nanoseconds, ordering: .relaxed)
        self.slowTurns.turnBegan(at: self.now)
        self.workLeft.store(self.budget.beginTurn(), ordering: .relaxed)
        // Targets added in this turn are called in the next.
        let waiting = self.nextTurn.count
        self.endTurn()
        self.dispatchEvents()
        self.takeUpNextTurn(waiting)
        self.fireTimers()
        self.runInbox()
        self.takeUpAfterEvents()
        self.slowTurns.turnEnded(after: self.now.duration(to: self.system.now()))
        // Several simulated loops share a thread: each is current only during its own turns.
        self.runner.store(0, ordering: .relaxed)
    }

    private func dispatchEvents() {
        var index = 0
        while index < self.events.count {
            let event = self.events[index]
            index += 1
            guard let watcher = self.table.watcher(event.token) else { continue }
            self.resetTurnBudget()
            watcher.ready(event.ready)
            self.pieceEnded(type(of: watcher))
            self.endTurn()
        }
    }

    /// Targets that the turn's work does not reach come first in the next one; a few are called in any case.
    private func takeUpNextTurn(_ count: Int) {
        var done = 0
        while done < count, done < Self.fewTargets || !self.budget.isSpent, let target = self.nextTurn.popFirst() {
            done += 1
            self.resetTurnBudget()
            target.nextTurnBegan()
            self.pieceEnded(type(of: target))
            self.endTurn()
        }
    }

    /// Targets called even when the turn's work is used up.
    private static let fewTargets = 16

    private func fireTimers() {
        while let (timer, target) = self.timers.popDue(self.now) {
            self.resetTurnBudget()
            target.timerFired(timer)
            self.pieceEnded(type(of: target))
            self.endTurn()
        }
    }

    private func runInbox() {
        for work in self.inbox.take(atMost: Self.inboxShare) {
            self.resetTurnBudget()
            switch work {
            case .closure(let closure): closure()
            case .job(let job): self.runJob(job)
            }
            self.pieceEnded(LoopInbox.self)
            self.endTurn()
        }
    }

    /// Targets added meanwhile are called at the end of the next turn.
    private func takeUpAfterEvents() {
        for _ in 0..<self.afterAllEvents.count {
            guard let target = self.afterAllEvents.popFirst() else { return }
            self.resetTurnBudget()
            target.eventsEnded()
            self.pieceEnded(type(of: target))
            self.endTurn()
        }
    }

    private func resetTurnBudget() {
        let share = self.budget.nextShare(unspent: self.workLeft.load(ordering: .relaxed))
        self.workLeft.store(share, ordering: .relaxed)
    }

    private func endTurn() {
        self.writeBuffer.wasBypassed = false
        // Each may cause the other: a failure that a flush meets is reported in the same turn.
        repeat {
            if let owner = self.writeBuffer.takeOwner() {
                owner.sendWriteBuffer()
                self.pieceEnded(LoopWriteBuffer.self)
            }
            if self.turnEndCount > 0 { self.notifyTurnEnds() }
        } while self.turnEndCount > 0 || self.writeBuffer.owner != nil
    }

    /// Not inlined: otherwise every end of a turn would set up access to the array, although mostly no target is
    /// registered.
    @inline(never)
    private func notifyTurnEnds() {
        // Two arrays alternate, so that both keep their memory.
        var targets = self.turnEndsInProgress
        self.turnEndsInProgress = []
        swap(&targets, &self.turnEnds)
        self.turnEndCount = 0
        for target in targets {
            target.turnEnded()
            self.pieceEnded(type(of: target))
        }
        targets.removeAll(keepingCapacity: true)
        self.turnEndsInProgress = targets
    }

    /// In debug builds, so that a slow turn is put down to what made it slow. Release builds measure whole turns only.
    @inline(__always)
    private func pieceEnded(_ worker: @autoclosure () -> Any.Type) {
        #if DEBUG
            if self.slowTurns.observer != nil { self.slowTurns.pieceEnded(worker(), at: self.system.now()) }
        #endif
    }

    // MARK: On the loop

    /// Receives in debug builds, at most once a second, a piece of work that took longer than 5 ms.
    package var slowWorkObserver: ((SlowWork) -> Void)? {
        get { self.slowTurns.observer }
        set {
            self.assertOnLoop()
            self.slowTurns.observer = newValue
        }
    }

    /// Counts work done in the current share, in units of `TurnBudget`.
    @inlinable package func spend(_ work: Int) {
        self.workLeft.store(self.workLeft.load(ordering: .relaxed) &- work, ordering: .relaxed)
    }

    /// Whether the current share of the turn is used up, so that the rest should wait for the next turn. Bytes that a
    /// consumer leaves then are offered again in the next turn, after all other ready descriptors.
    @inlinable package var budgetIsSpent: Bool {
        self.workLeft.load(ordering: .relaxed) <= 0
    }

    /// Calls `target` when the current event has been acted on.
    package func atTurnEnd(_ target: any TurnEndTarget) {
        self.assertOnLoop()
        self.turnEnds.append(target)
        self.turnEndCount += 1
    }

    /// Calls `target` when all events of this turn have been acted on, with a share of the turn's work: for what several
    /// events cause together. While targets are called so, the next turn is meant.
    package func afterEvents(_ target: any EventsEndTarget) {
        self.assertOnLoop()
        self.afterAllEvents.append(target)
    }

    /// Calls `target` in the next turn, after the events that are then ready, with a share of that turn's work.
    package func inNextTurn(_ target: any TurnEndTarget) {
        self.assertOnLoop()
        self.nextTurn.append(target)
    }

    /// Arms `timer`, or moves it. `target` is held until the timer fires or is disarmed.
    package func arm(_ timer: LoopTimer, at deadline: MonotonicInstant, target: any TimerTarget) {
        self.assertOnLoop()
        self.timers.arm(timer, at: deadline, target: target)
    }

    package func arm(_ timer: LoopTimer, after timeout: Duration, target: any TimerTarget) {
        self.assertOnLoop()
        self.timers.arm(timer, at: self.now.advanced(by: timeout), target: target)
    }

    package func disarm(_ timer: LoopTimer) {
        self.assertOnLoop()
        self.timers.disarm(timer)
    }

    /// The loop's only object of this type, made on first use.
    package func local<T: AnyObject>(_ type: T.Type, make: () -> T) -> T {
        self.assertOnLoop()
        return self.locals.object(type, make: make)
    }

    /// An empty array, perhaps with capacity; return it with `returnSpareBuffer` when its bytes are used up.
    package func takeSpareBuffer() -> [UInt8] {
        self.spareBuffers.popLast() ?? []
    }

    /// Keeps at most eight arrays of at most 256 KiB; others are freed.
    package func returnSpareBuffer(_ spare: consuming [UInt8]) {
        guard self.spareBuffers.count < 8, spare.capacity > 0, spare.capacity <= Self.receiveCapacity else { return }
        spare.removeAll(keepingCapacity: true)
        self.spareBuffers.append(spare)
    }

    func watch(_ descriptor: Descriptor, for interest: Interest, _ watcher: any Watchable) -> Result<
        UInt64, SystemError
    > {
        self.assertOnLoop()
        let token = self.table.add(watcher)
        if let error = self.system.watch(descriptor, for: interest, token: token) {
            self.table.remove(token)
            return .failure(error)
        }
        return .success(token)
    }

    func unwatch(_ descriptor: Descriptor, token: UInt64) {
        self.assertOnLoop()
        self.system.unwatch(descriptor)
        self.table.remove(token)
    }

    /// Entries in the timer queue, stale ones included: at most 64 more than armed timers.
    package var timerCount: Int {
        self.timers.count
    }

    /// Descriptors watched at the moment.
    package var watchedCount: Int {
        self.table.count
    }
}

/// The calls of the hot path, made from here because a loop's own parts need no reference counting during a call.
extension Loop {
    @inline(never)
    func receive(_ descriptor: Descriptor, at range: Range<Int>) -> Int {
        self.receiveBuffer.lend(range) { self.system.receive(descriptor, into: &$0) }
    }

    /// Offers `consumer` the first `total` bytes of the receive buffer.
    /// - Returns: number of bytes used; all if there is no consumer.
    @inline(never)
    func offer(_ total: Int, to consumer: (any TransportConsumer)?) -> Int {
        self.receiveBuffer.lend(0..<total) { consumer?.bytesReceived(&$0) ?? total }
    }

    /// Into the beginning of the receive buffer.
    func drainSplicePipe(atMost count: Int) -> Int {
        self.receiveBuffer.lend(0..<min(count, Self.receiveCapacity)) { self.system.drainSplicePipe(into: &$0) }
    }

    @inline(never)
    func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int {
        self.system.send(descriptor, bytes)
    }

    @inline(never)
    func send(_ descriptor: Descriptor, _ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.system.send(descriptor, head, bytes)
    }

    @inline(never)
    func fillWriteBuffer(upTo count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        self.writeBuffer.add(upTo: count, fill)
    }

    @inline(never)
    func addToWriteBuffer(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.writeBuffer.add(head, bytes)
    }
}

/// The loops of a process, each on a thread of its own.
package final class LoopGroup: Sendable {
    package let loops: [Loop]

    /// Starts `count` loops (at least one).
    /// - Parameter lend: gives the first loop a thread that is there already, on which it is to `run`; `nil` starts one
    ///   for it.
    /// - Throws: `SystemError` when there are not enough descriptors or threads.
    package init(count: Int, lend: ((Loop) -> Void)? = nil) throws(SystemError) {
        var loops: [Loop] = []
        for _ in 0..<max(1, count) {
            loops.append(Loop(system: try LinuxSystem()))
        }
        self.loops = loops
        for (index, loop) in loops.enumerated() {
            if index == 0, let lend {
                lend(loop)
                continue
            }
            guard SystemThread.start(named: "loop-\(index)", { loop.run() }) else {
                for loop in loops { loop.stop() }
                throw SystemError.wouldBlock
            }
        }
    }

    /// Ends all loops after their current turn. Open connections are left to the end of the process.
    package func stop() {
        for loop in self.loops { loop.stop() }
    }
}

/// Work that other threads hand to a loop, run in order of the calls.
///
/// Nothing is refused here, because much of it answers a waiting caller: code that adds more than one entry per call,
/// connection or channel limits itself before.
private final class LoopInbox: Sendable {
    enum Work: Sendable {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private let waiting = Mutex<Deque<Work>>([])
    /// Read without the lock once a turn.
    private let filled = Atomic<Bool>(false)

    var isEmpty: Bool {
        !self.filled.load(ordering: .acquiring)
    }

    /// - Returns: whether the inbox was empty: only then must the loop be woken.
    func add(_ work: Work) -> Bool {
        self.waiting.withLock { list in
            list.append(work)
            return !self.filled.exchange(true, ordering: .acquiringAndReleasing)
        }
    }

    /// Takes the first `limit` pieces of work at most.
    func take(atMost limit: Int) -> [Work] {
        guard !self.isEmpty else { return [] }
        return self.waiting.withLock { list in
            guard list.count > limit else {
                self.filled.store(false, ordering: .releasing)
                defer { list = [] }
                return Array(list)
            }
            defer { list.removeFirst(limit) }
            return Array(list.prefix(limit))
        }
    }
}

/// Does work at the end of a turn: flushes writes, makes calls that must not be made from inside another call.
package protocol TurnEndTarget: AnyObject {
    func turnEnded()
    /// Called after `Loop.inNextTurn`. Does the same as `turnEnded` unless said otherwise.
    func nextTurnBegan()
}

extension TurnEndTarget {
    package func nextTurnBegan() {
        self.turnEnded()
    }
}

/// Does work at the end of a turn that several events may cause together.
package protocol EventsEndTarget: AnyObject {
    /// Called after `Loop.afterEvents`.
    func eventsEnded()
}

/// Whether a transport requested `turnEnded`.
package enum TurnEndRequest {
    case none
    case requested
    /// The consumer awaits `outputProgressed` once everything is sent.
    case requestedToReportProgress
}

/// Something with a descriptor on a loop.
package protocol Watchable: AnyObject {
    /// The descriptor is ready. Called on the loop at most once a turn; readiness that remains is reported again in the
    /// next turn.
    func ready(_ events: Interest)
}

/// Watchers by token. A token holds a slot and its generation: an event for a descriptor that was closed and reused
/// meanwhile has an older generation and is dropped.
private struct WatchTable {
    private struct Slot {
        var generation: UInt32 = 0
        var watcher: (any Watchable)?
    }

    private var slots: [Slot] = []
    private var free: [UInt32] = []

    var count: Int {
        self.slots.count - self.free.count
    }

    mutating func add(_ watcher: any Watchable) -> UInt64 {
        let index = self.free.popLast() ?? self.grow()
        self.slots[Int(index)].watcher = watcher
        return UInt64(self.slots[Int(index)].generation) << 32 | UInt64(index)
    }

    private mutating func grow() -> UInt32 {
        self.slots.append(Slot())
        return UInt32(truncatingIfNeeded: self.slots.count - 1)
    }

    mutating func remove(_ token: UInt64) {
        let index = Int(token & 0xffff_ffff)
        guard index < self.slots.count, self.slots[index].generation == UInt32(token >> 32) else { return }
        self.slots[index].watcher = nil
        self.slots[index].generation &+= 1
        self.free.append(UInt32(truncatingIfNeeded: index))
    }

    func watcher(_ token: UInt64) -> (any Watchable)? {
        let index = Int(token & 0xffff_ffff)
        guard index < self.slots.count, self.slots[index].generation == UInt32(truncatingIfNeeded: token >> 32) else {
            return nil
        }
        return self.slots[index].watcher
    }
}

/// Objects of which each loop has one: pools, buffers, a random number generator. Looked up once, when a connection is
/// made.
private struct LoopObjects {
    private var objects: [ObjectIdentifier: AnyObject] = [:]

    mutating func object<T: AnyObject>(_ type: T.Type, make: () -> T) -> T {
        if let found = self.objects[ObjectIdentifier(type)] as? T { return found }
        let made = make()
        self.objects[ObjectIdentifier(type)] = made
        return made
    }
}
