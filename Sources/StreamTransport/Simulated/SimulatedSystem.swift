import DequeModule
import Synchronization

/// A loop's view of a simulated network: the kernel of one process, answering at once.
///
/// `wait` never blocks. It calls the completions of lookups that are done, as the real system does from its own `wait`,
/// gives what is ready now, and remembers the deadline; the network takes a loop that found nothing for waiting, and
/// gives it another turn when something becomes ready, the deadline passes or `wake` is called.
package final class SimulatedSystem: System {
    package let process: SimulatedProcess
    let number: Int
    private var watches: [Int32: SimulatedWatch] = [:]
    /// What may be ready, in the order in which it became so; what stays ready goes to the back, as in epoll's own
    /// list.
    private var candidates: Deque<SimulatedWatch> = []
    private let woken = Atomic<Bool>(false)
    private var lookups: [ResolutionTicket: (Result<[SocketAddress], ResolutionFailure>) -> Void] = [:]
    private var answers: Deque<(ResolutionTicket, Result<[SocketAddress], ResolutionFailure>)> = []
    private var lastTicket: UInt64 = 0
    private var turn: (() -> Void)?
    /// Whether the last wait found nothing; the real system would still be in it.
    private var isParked = false
    private var deadline: MonotonicInstant?
    /// What the target of the last `pass` did not take.
    var passed: [UInt8] = []

    init(in process: SimulatedProcess) {
        self.process = process
        self.number = process.network.nextNumber()
    }

    deinit {
        for (_, watch) in self.watches { watch.socket.watchers.remove(watch) }
    }

    package var network: SimulatedNetwork {
        self.process.network
    }

    // MARK: Driven by the network

    /// From now on `SimulatedNetwork.run` calls `turn` whenever this loop has something to do: one wait, and acting on
    /// what it gave. Without it, whoever holds the system calls it directly.
    package func drive(by turn: @escaping () -> Void) {
        self.turn = turn
        self.isParked = false
    }

    var isRunnable: Bool {
        guard self.turn != nil else { return false }
        if !self.isParked || !self.answers.isEmpty || self.woken.load(ordering: .acquiring) { return true }
        if let deadline = self.deadline, deadline <= self.network.now { return true }
        return self.hasReady
    }

    var parkedUntil: MonotonicInstant? {
        self.turn == nil ? nil : self.deadline
    }

    func takeTurn() {
        self.turn?()
    }

    func unpark() {
        self.isParked = false
    }

    private var hasReady: Bool {
        while let first = self.candidates.first {
            guard first.ready.isEmpty else { return true }
            first.isQueued = false
            self.candidates.removeFirst()
        }
        return false
    }

    // MARK: Waiting

    package func now() -> MonotonicInstant {
        self.network.now
    }

    package func wake() {
        self.woken.store(true, ordering: .releasing)
    }

    package func wait(_ events: inout ReadyEvents, until deadline: MonotonicInstant?) {
        let wasWoken = self.woken.exchange(false, ordering: .acquiringAndReleasing)
        let answered = self.deliverAnswers()
        self.collect(&events)
        let isOver = deadline.map { $0 <= self.network.now } ?? false
        self.isParked = !wasWoken && !answered && !isOver && events.count == 0
        self.deadline = deadline
    }

    private func collect(_ events: inout ReadyEvents) {
        events.removeAll()
        for _ in 0..<self.candidates.count where events.count < ReadyEvents.capacity {
            let watch = self.candidates.removeFirst()
            let ready = watch.ready
            guard !ready.isEmpty else {
                watch.isQueued = false
                continue
            }
            events.append(.init(token: watch.token, ready: ready))
            self.candidates.append(watch)
        }
        if self.network.faults.shufflesReadiness { events.shuffle(using: &self.network.chance) }
    }

    func enqueue(_ watch: SimulatedWatch) {
        guard !watch.isQueued, watch.isActive else { return }
        watch.isQueued = true
        self.candidates.append(watch)
    }

    func forget(_ watch: SimulatedWatch) {
        let number = watch.descriptor.number
        if self.watches[number] === watch { self.watches[number] = nil }
    }

    package func watch(_ descriptor: Descriptor, for interest: Interest, token: UInt64) -> SystemError? {
        guard let socket = self.process.socket(descriptor, "watch") else { return .badDescriptor }
        guard self.watches[descriptor.number] == nil else {
            self.network.misuse("watch on descriptor \(descriptor.number), which is watched already")
            return .fileExists
        }
        let watch = SimulatedWatch(socket, descriptor, for: interest, token: token, by: self)
        self.watches[descriptor.number] = watch
        socket.watchers.add(watch)
        self.enqueue(watch)
        return nil
    }

    package func rewatch(_ descriptor: Descriptor, for interest: Interest, token: UInt64) {
        guard let watch = self.watches[descriptor.number] else {
            return self.network.misuse("rewatch on descriptor \(descriptor.number), which is not watched")
        }
        if watch.token != token {
            self.network.misuse("rewatch on descriptor \(descriptor.number) with another token")
        }
        watch.interest = interest
        self.enqueue(watch)
    }

    package func unwatch(_ descriptor: Descriptor) {
        guard let watch = self.watches.removeValue(forKey: descriptor.number) else {
            return self.network.misuse("unwatch on descriptor \(descriptor.number), which is not watched")
        }
        watch.socket.watchers.remove(watch)
        watch.end()
    }

    /// From the seed: no secret at all.
    package func randomWords(_ count: Int) -> [UInt64] {
        (0..<max(1, min(32, count))).map { _ in self.network.chance.next() }
    }

    // MARK: Names

    package func resolve(
        _ host: String, port: UInt16, completion: @escaping (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) -> ResolutionTicket {
        self.lastTicket += 1
        let ticket = ResolutionTicket(number: self.lastTicket)
        self.lookups[ticket] = completion
        if let (answer, delay) = self.network.lookUp(host, port: port) {
            self.network.plan(after: delay) { [weak self] in self?.answers.append((ticket, answer)) }
        }
        return ticket
    }

    package func cancelResolution(_ ticket: ResolutionTicket) {
        guard self.lookups.removeValue(forKey: ticket) != nil else { return }
        self.network.note(.lookupGivenUp, self.number, Int(truncatingIfNeeded: ticket.number))
    }

    /// - Returns: whether anybody was told.
    private func deliverAnswers() -> Bool {
        var told = false
        while let (ticket, answer) = self.answers.popFirst() {
            guard let completion = self.lookups.removeValue(forKey: ticket) else { continue }
            told = true
            self.network.note(.lookedUp, self.number, Int(truncatingIfNeeded: ticket.number))
            completion(answer)
        }
        return told
    }
}
