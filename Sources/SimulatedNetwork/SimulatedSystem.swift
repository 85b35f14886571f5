import ByteKernels
import DequeModule
import StreamTransport
import Synchronization

/// A loop's view of a simulated network: the kernel of one process, answering at once.
///
/// `wait` never blocks. It calls the completions of finished lookups, as the real system does from its own `wait`,
/// returns the ready descriptors, and stores the deadline; the network considers a loop without events as waiting, and
/// gives it another turn when something becomes ready, the deadline passes or `wake` is called.
package final class SimulatedSystem: System {
    package let process: SimulatedProcess
    let number: Int
    private var watches: [Int32: SimulatedWatch] = [:]
    /// Watches that may be ready, in the order in which they became so; those that stay ready go to the back, as in
    /// epoll's own list.
    private var candidates: Deque<SimulatedWatch> = []
    private let woken = Atomic<Bool>(false)
    private var lookups: [ResolutionToken: (Result<[SocketAddress], ResolutionFailure>) -> Void] = [:]
    private var answers: Deque<(ResolutionToken, Result<[SocketAddress], ResolutionFailure>)> = []
    private var lastTicket: UInt64 = 0
    private var turn: (() -> Void)?
    /// Whether the last wait found nothing; the real system would still be in it.
    private var isParked = false
    private var deadline: MonotonicInstant?
    /// Bytes of the last `splice` that its target did not accept.
    private var passed: [UInt8] = []

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

    /// Lets `SimulatedNetwork.run` call `turn` whenever this loop has something to do: one wait, and handling its
    /// events. Without it, the test calls the loop directly.
    package func drive(by turn: @escaping () -> Void) {
        self.turn = turn
        self.isParked = false
    }

    /// The process has ended.
    func stop() {
        self.turn = nil
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

    package func wallClockMilliseconds() -> Int64 {
        self.network.wallClockMilliseconds
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

    fileprivate func forget(_ watch: SimulatedWatch) {
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
    ) -> ResolutionToken {
        self.lastTicket += 1
        let ticket = ResolutionToken(number: self.lastTicket)
        self.lookups[ticket] = completion
        if let (answer, delay) = self.network.lookUp(host, port: port) {
            self.network.plan(after: delay) { [weak self] in self?.answers.append((ticket, answer)) }
        }
        return ticket
    }

    package func cancelResolution(_ ticket: ResolutionToken) {
        guard self.lookups.removeValue(forKey: ticket) != nil else { return }
        self.network.note(.lookupGivenUp, self.number, Int(truncatingIfNeeded: ticket.number))
    }

    /// - Returns: whether a completion was called.
    private func deliverAnswers() -> Bool {
        var didDeliver = false
        while let (ticket, answer) = self.answers.popFirst() {
            guard let completion = self.lookups.removeValue(forKey: ticket) else { continue }
            didDeliver = true
            self.network.note(.lookedUp, self.number, Int(truncatingIfNeeded: ticket.number))
            completion(answer)
        }
        return didDeliver
    }
}

extension SimulatedSystem {
    package func listen(_ address: SocketAddress, options: ListenOptions) -> Result<Descriptor, SystemError> {
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        do throws(SystemError) {
            return .success(self.process.open(.listener(try self.network.listen(address, options: options))))
        } catch {
            return .failure(error)
        }
    }

    package func accept(_ listener: Descriptor) -> Result<AcceptedSocket, SystemError> {
        guard case .listener(let socket) = self.process.socket(listener, "accept") else {
            return .failure(.badDescriptor)
        }
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        guard !socket.isEmpty, !self.network.chance.happens(self.network.faults.spuriousWouldBlock),
            let stream = socket.dequeue()
        else { return .failure(.wouldBlock) }
        self.network.note(.accepted, socket.number, stream.number)
        let descriptor = self.process.open(.stream(stream))
        if let inherited = socket.inherited { self.apply(inherited, to: stream) }
        return .success(AcceptedSocket(descriptor: descriptor, peer: stream.remoteAddress))
    }

    package var hasDescriptors: Bool { self.process.descriptorRefusal() == nil }

    package func connect(_ address: SocketAddress, _ options: ConnectOptions) -> Result<Descriptor, SystemError> {
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        do throws(SystemError) {
            let stream = try self.network.connect(address, from: self.process.address)
            return .success(self.process.open(.stream(stream)))
        } catch {
            return .failure(error)
        }
    }

    package func connectError(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "connectError") else { return .badDescriptor }
        let number = stream.takeError()
        return number == 0 ? nil : SystemError(number)
    }

    package func receive(_ descriptor: Descriptor, into buffer: inout MutableRawSpan) -> Int {
        guard let stream = self.process.stream(descriptor, "receive") else { return SystemError.badDescriptor.asResult }
        guard self.network.losesPathNotifications, self.peerAddress(descriptor) == Self.pathNotifications else {
            return stream.receive(into: &buffer)
        }
        self.network.losesPathNotifications = false
        while stream.receive(into: &buffer) > 0 {}
        return SystemError.noBuffers.asResult
    }

    package func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int {
        guard let stream = self.process.stream(descriptor, "send") else { return SystemError.badDescriptor.asResult }
        return stream.send(bytes.byteCount) { queue, count in queue.append(bytes.extracting(0..<count)) }
    }

    package func send(_ descriptor: Descriptor, pieces: [[UInt8]], skipping: Int) -> Int {
        // More than any send buffer would be copied for nothing.
        let most = max(self.network.faults.sendBuffer.upperBound, 1)
        var joined: [UInt8] = []
        var skipped = skipping
        for piece in pieces where joined.count < most {
            joined += piece.dropFirst(skipped).prefix(most)
            skipped = max(0, skipped - piece.count)
        }
        return joined.withRawSpan { self.send(descriptor, $0) }
    }

    /// So little that short transfers pass too.
    package var spliceThreshold: Int { 64 }

    package func splice(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> SplicedBytes? {
        guard self.passed.isEmpty else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        let received = bytes.withMutableRawSpan { self.receive(source, into: &$0) }
        guard received > 0 else { return SplicedBytes(received: received, sent: 0) }
        let sent = bytes.withRawSpan { self.send(target, $0.extracting(0..<received)) }
        self.passed = Array(bytes[max(0, sent)..<received])
        return SplicedBytes(received: received, sent: sent)
    }

    package func drainSplicePipe(into buffer: inout MutableRawSpan) -> Int {
        let count = min(buffer.byteCount, self.passed.count)
        self.passed.withRawSpan { buffer.copy($0.extracting(0..<count), at: 0) }
        self.passed.removeFirst(count)
        return count
    }

    package func shutdownOutput(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "shutdownOutput") else { return .badDescriptor }
        return stream.shutdownOutput()
    }

    package func shutdownInput(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "shutdownInput") else { return .badDescriptor }
        return stream.shutdownInput()
    }

    package func close(_ descriptor: Descriptor) {
        self.process.release(descriptor, "close")?.close()
    }

    package func reset(_ descriptor: Descriptor) {
        switch self.process.release(descriptor, "reset") {
        case .stream(let stream): stream.reset()
        case .listener(let listener): listener.close()
        case nil: break
        }
    }

    package func socketFile(at path: String) -> SocketFile? {
        self.network.listeners.file(at: path)
    }

    package func remove(_ file: SocketFile) {
        self.network.listeners.remove(file)
    }

    package func setMode(_ mode: UInt32, ofSocketFile path: String) -> SystemError? {
        self.network.listeners.setMode(mode, ofFileAt: path)
        return nil
    }

    package func localAddress(_ descriptor: Descriptor) -> SocketAddress? {
        switch self.process.socket(descriptor, "localAddress") {
        case .stream(let stream): stream.localAddress
        case .listener(let listener): listener.address
        case nil: nil
        }
    }

    package func peerAddress(_ descriptor: Descriptor) -> SocketAddress? {
        guard case .stream(let stream) = self.process.socket(descriptor, "peerAddress") else { return nil }
        return stream.family == .unix || stream.state == .established ? stream.remoteAddress : nil
    }

    package func apply(_ options: SocketOptions, to descriptor: Descriptor) -> SystemError? {
        switch self.process.socket(descriptor, "apply") {
        case .stream(let stream): self.apply(options, to: stream)
        case .listener(let listener): listener.inherited = options
        case nil: return .badDescriptor
        }
        return nil
    }

    package func setUserTimeout(_ timeout: Duration?, of descriptor: Descriptor) {
        guard let stream = self.process.stream(descriptor, "setUserTimeout"), stream.family == .tcp else { return }
        stream.options.userTimeout = timeout
        // A check that was planned may come too late now.
        stream.awaitsAcknowledgement = false
        stream.awaitAcknowledgement()
        stream.expectSilence()
    }

    package func setUnsentLimit(_ limit: Int, of descriptor: Descriptor) {
        self.process.stream(descriptor, "setUnsentLimit")?.unsentLimit = max(1, limit)
    }

    package func hasUnreadInput(_ descriptor: Descriptor) -> Bool {
        self.process.stream(descriptor, "hasUnreadInput")?.received.isEmpty == false
    }

    package func unacknowledgedBytes(of descriptor: Descriptor) -> Int? {
        self.process.stream(descriptor, "unacknowledgedBytes")?.usedOutput
    }

    package func outputHold(of descriptor: Descriptor) -> OutputHold? {
        guard let stream = self.process.stream(descriptor, "outputHold"), stream.family == .tcp, let peer = stream.peer
        else { return nil }
        // Segments leave at once here: what has not arrived is in flight, or waits for the window.
        return OutputHold(
            unsent: stream.awaitsWindow ? stream.outbound.count : 0,
            window: max(0, peer.receiveCapacity - peer.received.count))
    }

    private func apply(_ options: SocketOptions, to stream: SimulatedStream) {
        stream.options = options
        stream.awaitAcknowledgement()
        stream.expectSilence()
    }

    /// Delays all data of this connection for `duration`, in both directions. `nil` is for ever. Kernel timeouts
    /// continue meanwhile.
    package func stall(_ descriptor: Descriptor, for duration: Duration?, output: Bool = true, input: Bool = true) {
        guard let stream = self.process.stream(descriptor, "stall") else { return }
        let end = duration.map { self.network.now.advanced(by: $0) } ?? .distantFuture
        if output { stream.stall(until: end) }
        if input { stream.peer?.stall(until: end) }
    }
}

/// Kind of a simulated descriptor.
enum OpenSocket {
    case stream(SimulatedStream)
    case listener(SimulatedListener)

    /// Readiness that epoll would report, whatever the interest.
    var readiness: Interest {
        switch self {
        case .stream(let stream): stream.readiness
        case .listener(let listener): listener.readiness
        }
    }

    var watchers: Watchers {
        switch self {
        case .stream(let stream): stream.watchers
        case .listener(let listener): listener.watchers
        }
    }

    func close() {
        switch self {
        case .stream(let stream): stream.close()
        case .listener(let listener): listener.close()
        }
    }
}

/// One entry of a simulated epoll set.
final class SimulatedWatch {
    let socket: OpenSocket
    let descriptor: Descriptor
    let token: UInt64
    var interest: Interest
    /// Whether it is in its system's list of candidates.
    var isQueued = false
    private(set) var isActive = true
    private weak var system: SimulatedSystem?

    init(
        _ socket: OpenSocket, _ descriptor: Descriptor, for interest: Interest, token: UInt64,
        by system: SimulatedSystem
    ) {
        self.socket = socket
        self.descriptor = descriptor
        self.token = token
        self.interest = interest
        self.system = system
    }

    /// Events to report now: those of interest, and hang-up in any case (epoll_ctl(2)).
    var ready: Interest {
        self.isActive ? self.socket.readiness.intersection(self.interest.union(.hangUp)) : []
    }

    func enqueue() {
        self.system?.enqueue(self)
    }

    func end() {
        self.isActive = false
        self.system?.forget(self)
    }
}

/// The loops that watch one simulated socket: usually one.
final class Watchers {
    private var watches: [SimulatedWatch] = []

    func add(_ watch: SimulatedWatch) {
        self.watches.append(watch)
    }

    func remove(_ watch: SimulatedWatch) {
        self.watches.removeAll { $0 === watch }
    }

    /// Removes a closed socket, as the kernel removes a closed descriptor from every epoll set.
    func removeAll() {
        for watch in self.watches { watch.end() }
        self.watches = []
    }

    /// Readiness may have changed.
    func notify() {
        for watch in self.watches { watch.enqueue() }
    }
}

/// A loop that may be gone.
struct WeakSystem {
    weak var system: SimulatedSystem?
}

extension SocketAddress {
    /// Address that a connection to this one reaches: Linux takes the unspecified address for loopback.
    var reachable: SocketAddress {
        switch self {
        case .ipv4(0, let port): .ipv4(address: 0x7f00_0001, port: port)
        case .ipv6(0, 0, _, let port): .ipv6(high: 0, low: 1, scope: 0, port: port)
        case .ipv4, .ipv6, .unix: self
        }
    }

    /// Where a process that is `process` to the others connects from: loopback to loopback, else its own address, whose
    /// IPv6 twin lies in 2001:db8::/96.
    func source(_ process: UInt32) -> SocketAddress {
        switch self {
        case .ipv4(let address, _) where address >> 24 == 127: .ipv4(address: 0x7f00_0001, port: 0)
        case .ipv4: .ipv4(address: process, port: 0)
        case .ipv6(0, 1, _, _): self
        case .ipv6: .ipv6(high: 0x2001_0db8_0000_0000, low: UInt64(process), scope: 0, port: 0)
        case .unix: .unix(path: "")
        }
    }
}
