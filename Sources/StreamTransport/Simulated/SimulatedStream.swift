import DequeModule

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

    enum Life {
        case connecting
        case established
        /// Reset, timed out or never connected: the kernel's state is closed, though the descriptor may be open.
        case over
    }

    /// What travels together; `nil` bytes are the FIN.
    struct Segment {
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

    var life: Life
    var inputShut = false
    var outputShut = false
    var finArrived = false
    /// Given once, to the first call that asks; 0 for none.
    var error: Int32 = 0
    /// No descriptor stands for this end any more; the kernel still sends what it took.
    var isOrphan = false

    var received = ByteQueue()
    let receiveCapacity: Int
    /// Bytes sent that did not arrive yet, in `segments`.
    var outbound = ByteQueue()
    let sendCapacity: Int
    /// Of bytes that wait for the peer's window, the kernel takes no more.
    var unsentLimit: Int?
    var segments: Deque<Segment> = []
    var latency: Duration
    var lastArrival = MonotonicInstant(nanoseconds: 0)
    var stalledUntil = MonotonicInstant(nanoseconds: 0)
    /// The peer's buffer was full when something arrived: its next read lets it in.
    var awaitsWindow = false
    /// When our reset reaches the peer.
    var resetDue: MonotonicInstant?
    /// Bytes left to send until something on the way resets both ends.
    var bytesUntilReset: Int?

    /// Since when the oldest bytes under way make no progress.
    var unacknowledgedSince: MonotonicInstant?
    var awaitsAcknowledgement = false
    var lastHeard: MonotonicInstant

    init(
        _ family: Family, local: SocketAddress, remote: SocketAddress, life: Life, on network: SimulatedNetwork,
        latency: Duration
    ) {
        self.number = network.nextNumber()
        self.family = family
        self.network = network
        self.localAddress = local
        self.remoteAddress = remote
        self.life = life
        self.latency = latency
        self.sendCapacity = max(1, network.chance.count(in: network.faults.sendBuffer))
        self.receiveCapacity = max(1, network.chance.count(in: network.faults.receiveBuffer))
        self.lastHeard = network.now
    }

    /// As `tcp_poll` and `unix_poll` in Linux compute it.
    var readiness: Interest {
        guard self.life != .connecting else { return [] }
        var ready: Interest = []
        if self.life == .over || (self.inputShut && self.outputShut) || self.error != 0 { ready.insert(.hangUp) }
        if self.inputShut || !self.received.isEmpty { ready.insert(.readable) }
        if self.isWritable { ready.insert(.writable) }
        return ready
    }

    private var isWritable: Bool {
        switch self.family {
        // unix_writable: at most a quarter of the buffer is in use.
        case .unix: self.usedOutput * 4 <= self.sendCapacity
        // sk_stream_is_writeable: free space is at least half of what is in use.
        case .tcp: self.outputShut || (self.usedOutput < self.sendCapacity && self.roomForOutput >= self.usedOutput / 2)
        }
    }

    /// A Unix socket's bytes count against the sender until the receiver has read them.
    var usedOutput: Int {
        self.family == .unix ? self.peer?.received.count ?? 0 : self.outbound.count
    }

    var roomForOutput: Int {
        let room = self.sendCapacity - self.usedOutput
        guard let limit = self.unsentLimit, self.awaitsWindow else { return room }
        return max(0, min(room, limit - self.usedOutput))
    }

    /// The pending error, which is thereby told.
    func takeError() -> Int32 {
        defer { self.error = 0 }
        return self.error
    }

    /// The connection is over for this end, with an error for whoever asks first. What arrived before stays readable.
    func fail(_ error: SystemError) {
        guard self.life != .over else { return }
        self.life = .over
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
