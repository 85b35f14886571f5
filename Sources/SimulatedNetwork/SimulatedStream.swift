import ByteKernels
import DequeModule
import StreamTransport

/// One end of a simulated connection, behaving as a Linux socket does.
///
/// The flags follow the kernel's own (`RCV_SHUTDOWN`, `SEND_SHUTDOWN`, `SOCK_DONE`, `sk_err`), because what a program
/// sees of half-close and reset follows from them. In particular: bytes that arrived before a reset can still be read,
/// then the error is given once, then the end of input; a reset that follows a FIN is seen by writes alone; and a Unix
/// socket's end takes both directions at once.
final class SimulatedStream {
    enum Family {
        case tcp
        case unix
    }

    enum State {
        case connecting
        case established
        /// Reset, timed out or never connected: the kernel's state is closed, though the descriptor may be open.
        case over
    }

    /// Bytes that travel together; `nil` is the FIN.
    private struct Segment {
        var bytes: Int?
        let arrival: MonotonicInstant
    }

    let number: Int
    let family: Family
    unowned let network: SimulatedNetwork
    let watchers = Watchers()
    let localAddress: SocketAddress
    let remoteAddress: SocketAddress
    var options = SocketOptions()
    var peer: SimulatedStream?

    var state: State
    var inputShut = false
    private var outputShut = false
    var finArrived = false
    /// Given once, to the first call that asks; 0 for none.
    var error: Int32 = 0
    /// No descriptor refers to this end any more; the kernel still sends what it accepted.
    private var isOrphan = false

    var received = ByteQueue()
    let receiveCapacity: Int
    /// Bytes sent that did not arrive yet, in `segments`.
    var outbound = ByteQueue()
    private let sendCapacity: Int
    /// Of bytes that wait for the peer's window, the kernel takes no more.
    var unsentLimit: Int?
    private var segments: Deque<Segment> = []
    var latency: Duration
    var lastArrival = MonotonicInstant(nanoseconds: 0)
    private var stalledUntil = MonotonicInstant(nanoseconds: 0)
    /// The peer's buffer was full when something arrived: its next read lets it in.
    var awaitsWindow = false
    /// When our reset reaches the peer.
    private var resetDue: MonotonicInstant?
    /// Bytes left to send until something on the way resets both ends.
    var bytesUntilReset: Int?

    /// Since when the oldest bytes in flight make no progress.
    private var unacknowledgedSince: MonotonicInstant?
    var awaitsAcknowledgement = false
    private var lastHeard: MonotonicInstant

    init(
        _ family: Family, local: SocketAddress, remote: SocketAddress, state: State, on network: SimulatedNetwork,
        latency: Duration
    ) {
        self.number = network.nextNumber()
        self.family = family
        self.network = network
        self.localAddress = local
        self.remoteAddress = remote
        self.state = state
        self.latency = latency
        self.sendCapacity = max(1, network.chance.count(in: network.faults.sendBuffer))
        self.receiveCapacity = max(1, network.chance.count(in: network.faults.receiveBuffer))
        self.lastHeard = network.now
    }

    /// As `tcp_poll` and `unix_poll` in Linux compute it.
    var readiness: Interest {
        guard self.state != .connecting else { return [] }
        var ready: Interest = []
        if self.state == .over || (self.inputShut && self.outputShut) || self.error != 0 { ready.insert(.hangUp) }
        if self.inputShut || !self.received.isEmpty { ready.insert(.readable) }
        if self.isWritable { ready.insert(.writable) }
        return ready
    }

    private var isWritable: Bool {
        switch self.family {
        // unix_writable: at most a quarter of the buffer is in use.
        case .unix: self.usedOutput * 4 <= self.sendCapacity
        // sk_stream_is_writeable: free space is at least half of the used space.
        case .tcp: self.outputShut || (self.usedOutput < self.sendCapacity && self.roomForOutput >= self.usedOutput / 2)
        }
    }

    /// A Unix socket's bytes count against the sender until the receiver has read them.
    var usedOutput: Int {
        self.family == .unix ? self.peer?.received.count ?? 0 : self.outbound.count
    }

    private var roomForOutput: Int {
        let room = self.sendCapacity - self.usedOutput
        guard let limit = self.unsentLimit, self.awaitsWindow else { return room }
        return max(0, min(room, limit - self.usedOutput))
    }

    /// Returns and clears the pending error.
    func takeError() -> Int32 {
        defer { self.error = 0 }
        return self.error
    }

    /// Ends the connection for this end with a pending error. Received bytes stay readable.
    func fail(_ error: SystemError) {
        guard self.state != .over else { return }
        self.state = .over
        self.error = error.number
        self.inputShut = true
        self.outputShut = true
        self.outbound.removeAll()
        self.segments.removeAll()
        self.unacknowledgedSince = nil
        self.watchers.notify()
    }

    /// Nothing passes between the two ends any more.
    func sever() {
        self.peer?.peer = nil
        self.peer = nil
    }
}

/// The system calls on a connection, with the answers that Linux gives.
extension SimulatedStream {
    func receive(into buffer: inout MutableRawSpan) -> Int {
        guard !self.received.isEmpty else { return self.receiveNothing() }
        guard buffer.byteCount > 0 else { return 0 }
        guard !self.network.chance.happens(self.network.faults.spuriousWouldBlock) else {
            return SystemError.wouldBlock.asResult
        }
        var count = min(buffer.byteCount, self.received.count)
        if self.network.chance.happens(self.network.faults.shortRead) {
            count = self.network.chance.count(in: 1...count)
        }
        self.received.take(count, into: &buffer)
        self.network.note(.received, self.number, count)
        self.openWindow()
        return count
    }

    private func receiveNothing() -> Int {
        if self.finArrived { return 0 }
        if self.error != 0 { return -Int(self.takeError()) }
        return self.inputShut ? 0 : SystemError.wouldBlock.asResult
    }

    private func openWindow() {
        guard let sender = self.peer else { return }
        if self.family == .unix { return sender.watchers.notify() }
        guard sender.awaitsWindow else { return }
        sender.awaitsWindow = false
        self.network.plan(after: self.latency) { sender.deliver() }
    }

    /// - Parameter append: copies the first `count` bytes to the end of the queue given.
    func send(_ count: Int, _ append: (inout ByteQueue, Int) -> Void) -> Int {
        guard self.state != .connecting else { return SystemError.wouldBlock.asResult }
        if self.error != 0, self.family == .tcp { return -Int(self.takeError()) }
        guard !self.outputShut, self.family == .tcp || self.peer != nil else { return SystemError.brokenPipe.asResult }
        guard count > 0 else { return 0 }
        var taken = min(count, self.roomForOutput)
        guard taken > 0, !self.network.chance.happens(self.network.faults.spuriousWouldBlock) else {
            return SystemError.wouldBlock.asResult
        }
        if self.network.chance.happens(self.network.faults.shortWrite) {
            taken = self.network.chance.count(in: 1...taken)
        }
        self.network.note(.sent, self.number, taken)
        if self.family == .unix, let receiver = self.peer {
            append(&receiver.received, taken)
            receiver.watchers.notify()
        } else {
            append(&self.outbound, taken)
            self.transmit(taken)
        }
        return taken
    }

    func shutdownOutput() -> SystemError? {
        guard self.state == .established else { return .notConnected }
        guard !self.outputShut else { return nil }
        self.outputShut = true
        self.network.note(.finSent, self.number, 0)
        if self.family == .unix {
            self.peer?.inputShut = true
            self.peer?.watchers.notify()
        } else {
            self.transmitFIN()
        }
        self.watchers.notify()
        return nil
    }

    func shutdownInput() -> SystemError? {
        guard self.state == .established else { return .notConnected }
        self.inputShut = true
        self.network.note(.inputShut, self.number, 0)
        if self.family == .unix {
            self.peer?.outputShut = true
            self.peer?.watchers.notify()
        }
        self.watchers.notify()
        return nil
    }

    /// Closes the last descriptor. Bytes that the kernel accepted still arrive; unread bytes are answered with a reset
    /// (RFC 2525 §2.17), which Linux does for both families.
    func close() {
        self.isOrphan = true
        let unread = !self.received.isEmpty
        self.received.removeAll()
        self.network.note(.closed, self.number, unread ? 1 : 0)
        switch (self.state, self.family) {
        case (.over, _): break
        case (.connecting, _): self.state = .over
        case (.established, .unix): self.closeUnix(unread: unread)
        case (.established, .tcp) where unread: self.sendReset()
        case (.established, .tcp): _ = self.shutdownOutput()
        }
        self.severIfDone()
    }

    private func closeUnix(unread: Bool) {
        self.state = .over
        self.peer?.endedByUnixPeer(unread ? .reset : nil)
        self.sever()
    }

    private func endedByUnixPeer(_ failure: SystemError?) {
        self.state = .over
        self.inputShut = true
        self.outputShut = true
        self.error = failure?.number ?? 0
        self.watchers.notify()
    }

    /// Closes with a reset. On a Unix socket there is no such thing, and it is a close.
    func reset() {
        guard self.family == .tcp, self.state == .established else { return self.close() }
        self.isOrphan = true
        self.received.removeAll()
        self.network.note(.closed, self.number, 2)
        self.sendReset()
    }
}

extension SystemError {
    /// As a transfer's result: negated.
    var asResult: Int {
        -Int(self.number)
    }
}

/// How a connection notices that nothing comes through: user timeout, retransmission limit, keep-alive.
extension SimulatedStream {
    /// Linux gives up after fifteen retransmissions (`tcp_retries2`), which takes 924.6 s.
    private static let retransmissionLimit = Duration.seconds(924)

    /// Bytes of ours arrived.
    private func acknowledged() {
        self.unacknowledgedSince = self.outbound.isEmpty ? nil : self.network.now
        self.lastHeard = self.network.now
        self.watchers.notify()
    }

    /// How long bytes may stay in flight. Without a user timeout a closed window is waited on for ever, a silent
    /// network is not.
    private var acknowledgementLimit: Duration? {
        self.options.userTimeout ?? (self.isPathStalled ? Self.retransmissionLimit : nil)
    }

    private var isPathStalled: Bool {
        self.pathStalledUntil > self.network.now
    }

    private var pathStalledUntil: MonotonicInstant {
        max(self.stalledUntil, self.peer?.stalledUntil ?? self.stalledUntil)
    }

    func awaitAcknowledgement() {
        guard !self.awaitsAcknowledgement, self.state == .established, let since = self.unacknowledgedSince,
            let limit = self.acknowledgementLimit
        else { return }
        self.awaitsAcknowledgement = true
        self.network.planPatiently(at: since.advanced(by: limit)) { [weak self] in self?.checkAcknowledgement() }
    }

    private func checkAcknowledgement() {
        self.awaitsAcknowledgement = false
        guard self.state == .established, let since = self.unacknowledgedSince, let limit = self.acknowledgementLimit
        else {
            return
        }
        guard since.advanced(by: limit) <= self.network.now else { return self.awaitAcknowledgement() }
        self.timeOut()
    }

    private func timeOut() {
        self.network.note(.timedOut, self.number, self.outbound.count)
        self.fail(.timedOut)
    }

    /// Holds up everything that this end sends, until `end`.
    func stall(until end: MonotonicInstant) {
        self.network.note(.stalled, self.number, Int(self.network.now.duration(to: end).clampedNanoseconds))
        self.stalledUntil = max(self.stalledUntil, end)
        if end != .distantFuture { self.network.planPatiently(at: end) { self.deliver() } }
        for end in [self, self.peer] {
            end?.awaitAcknowledgement()
            end?.expectSilence()
        }
    }

    /// Plans what keep-alive finds if the stall outlives it. Probes over a network that answers change nothing and are
    /// not simulated.
    func expectSilence() {
        guard self.state == .established, self.family == .tcp, let patience = self.keepAlivePatience else { return }
        let heard = self.lastHeard
        let deadline = max(heard.advanced(by: patience), self.network.now)
        guard deadline < self.pathStalledUntil else { return }
        self.network.planPatiently(at: deadline) { [weak self] in
            guard let self, self.state == .established, self.isPathStalled else { return }
            // No keep-alive probes are sent while bytes are unacknowledged: those have a limit of their own.
            guard self.outbound.isEmpty else { return }
            // The peer was heard meanwhile, or the options have changed.
            guard self.lastHeard == heard, self.keepAlivePatience == patience else { return self.expectSilence() }
            self.timeOut()
        }
    }

    /// From the last segment heard to the timeout; a user timeout replaces the number of probes (tcp(7)).
    private var keepAlivePatience: Duration? {
        guard let idle = self.options.keepAliveIdle else { return nil }
        let interval = max(self.options.keepAliveInterval, .seconds(1))
        guard let limit = self.options.userTimeout else {
            return idle + interval * Int(max(1, self.options.keepAliveProbes))
        }
        var patience = idle + interval
        if patience < limit {
            let missing = (limit - patience).clampedNanoseconds
            let step = interval.clampedNanoseconds
            patience += interval * Int(missing / step + (missing % step == 0 ? 0 : 1))
        }
        return patience
    }
}

/// Transmission from one end of a TCP connection to the other.
///
/// Segments of one direction arrive in order, each after the connection's latency and its own jitter; a segment that
/// finds the receiver's buffer full waits until it is read.
extension SimulatedStream {
    private func transmit(_ count: Int) {
        var left = count
        while left > 0 {
            let size = min(left, max(1, self.network.chance.count(in: self.network.faults.segmentSize)))
            self.emit(Segment(bytes: size, arrival: self.nextArrival()))
            left -= size
        }
        if self.unacknowledgedSince == nil { self.unacknowledgedSince = self.network.now }
        self.awaitAcknowledgement()
        self.countTowardsReset(count)
    }

    private func transmitFIN() {
        self.emit(Segment(bytes: nil, arrival: self.nextArrival()))
    }

    private func emit(_ segment: Segment) {
        self.segments.append(segment)
        self.network.plan(at: segment.arrival) { self.deliver() }
    }

    private func nextArrival() -> MonotonicInstant {
        var delay = self.latency + self.network.chance.duration(in: self.network.faults.jitter)
        if self.network.chance.happens(self.network.faults.stall) {
            let stall = self.network.chance.duration(in: self.network.faults.stallDuration)
            self.network.note(.stalled, self.number, Int(stall.clampedNanoseconds))
            delay += stall
        }
        self.lastArrival = max(self.lastArrival, self.network.now.advanced(by: delay))
        return self.lastArrival
    }

    private func countTowardsReset(_ count: Int) {
        guard let left = self.bytesUntilReset else { return }
        self.bytesUntilReset = left - count
        guard left < count, let peer = self.peer else { return }
        self.bytesUntilReset = nil
        let ends = [self, peer]
        self.network.plan(at: self.lastArrival) {
            for end in ends { end.resetArrived() }
        }
    }

    /// Hands over what has arrived.
    private func deliver() {
        guard let receiver = self.peer, self.network.now >= self.stalledUntil else { return }
        while let segment = self.segments.first, segment.arrival <= self.network.now {
            guard let bytes = segment.bytes else {
                self.segments.removeFirst()
                receiver.finDidArrive()
                continue
            }
            guard receiver.takesInput else {
                self.segments.removeAll()
                return receiver.refuseInput()
            }
            let moved = min(bytes, receiver.receiveCapacity - receiver.received.count)
            guard moved > 0 else {
                self.network.note(.windowClosed, self.number, self.outbound.count)
                self.awaitsWindow = true
                break
            }
            self.hand(moved, of: bytes, to: receiver)
        }
        if let due = self.resetDue, due <= self.network.now {
            self.resetDue = nil
            receiver.resetArrived()
        }
        self.severIfDone()
    }

    private func hand(_ moved: Int, of bytes: Int, to receiver: SimulatedStream) {
        if moved == bytes {
            self.segments.removeFirst()
        } else {
            self.segments[0].bytes = bytes - moved
        }
        self.outbound.move(moved, to: &receiver.received)
        self.network.note(.arrived, receiver.number, moved)
        receiver.lastHeard = self.network.now
        self.acknowledged()
        receiver.watchers.notify()
    }

    /// Linux keeps taking bytes after `SHUT_RD` alone; with both directions shut, or closed, it answers them with a
    /// reset.
    private var takesInput: Bool {
        self.state == .established && !self.isOrphan && !(self.inputShut && self.outputShut)
    }

    private func refuseInput() {
        let wasOpen = self.state == .established && !self.isOrphan
        self.sendReset()
        guard wasOpen else { return }
        self.error = SystemError.reset.number
        self.watchers.notify()
    }

    private func finDidArrive() {
        guard self.state == .established else { return }
        self.network.note(.finArrived, self.number, 0)
        self.finArrived = true
        self.inputShut = true
        self.lastHeard = self.network.now
        self.watchers.notify()
    }

    /// Sends a reset after the data in flight, and ends.
    private func sendReset() {
        // Nothing is left to reset when both directions ended cleanly.
        let isFinished = self.outputShut && self.finArrived && self.outbound.isEmpty
        self.state = .over
        self.inputShut = true
        self.outputShut = true
        self.unacknowledgedSince = nil
        guard !isFinished, self.resetDue == nil else { return self.severIfDone() }
        self.network.note(.resetSent, self.number, 0)
        let due = self.nextArrival()
        self.resetDue = due
        self.network.plan(at: due) { self.deliver() }
    }

    /// Linux: refused while connecting, a broken pipe after the peer's FIN (only writes see it), else a reset.
    func resetArrived() {
        defer { self.sever() }
        guard self.state != .over else { return }
        self.network.note(.resetArrived, self.number, self.received.count)
        switch self.state {
        case .connecting: self.fail(.refused)
        case .established, .over: self.fail(self.finArrived && !self.outputShut ? .brokenPipe : .reset)
        }
    }

    /// Releases the other end once neither can send to the other.
    private func severIfDone() {
        guard let peer = self.peer, self.isOrphan, peer.isOrphan else { return }
        let isQuiet = self.segments.isEmpty && peer.segments.isEmpty && self.resetDue == nil && peer.resetDue == nil
        if isQuiet { self.sever() }
    }
}

/// Bytes in the order in which they came, as a kernel buffer holds them.
struct ByteQueue {
    private var storage: [UInt8] = []
    private var head = 0

    var count: Int {
        self.storage.count - self.head
    }

    var isEmpty: Bool {
        self.count == 0
    }

    mutating func append(_ bytes: RawSpan) {
        self.storage.append(bytes)
    }

    /// Moves the first `count` bytes to the end of `other`.
    mutating func move(_ count: Int, to other: inout ByteQueue) {
        other.storage.append(contentsOf: self.storage[self.head..<(self.head + count)])
        self.drop(count)
    }

    /// Takes the first `count` bytes off, into the front of `buffer`.
    mutating func take(_ count: Int, into buffer: inout MutableRawSpan) {
        self.storage.withRawSpan { buffer.copy($0.extracting(self.head..<(self.head + count)), at: 0) }
        self.drop(count)
    }

    mutating func removeAll() {
        self.storage = []
        self.head = 0
    }

    private mutating func drop(_ count: Int) {
        self.head += count
        if self.head == self.storage.count {
            self.removeAll()
        } else if self.head > 65_536, self.head > self.storage.count / 2 {
            self.storage.removeFirst(self.head)
            self.head = 0
        }
    }
}
