import StreamTransport

/// A byte stream to a peer, opened towards it or accepted from it, with reads and writes that queue.
///
/// Reads are answered in their order, writes go out in theirs, and the two do not wait for each other. `closeRead`,
/// `closeWrite`, `startSecureConnection` and `captureStreams` take their place behind what was asked for before them.
/// Usable from any thread.
///
/// - Source: the URL loading system's `URLSessionStreamTask`; both roles are ours.
public final class StreamTask: @unchecked Sendable {
    /// What one read gave.
    public struct Chunk: Sendable, Hashable {
        /// Between the read's minimum and maximum; fewer only at the end of the stream.
        public let bytes: [UInt8]
        /// The peer has finished sending, and nothing is left to read.
        public let isAtEnd: Bool
    }

    /// What waits until both queues have come to it.
    enum Barrier {
        case secure(SecureSettings, (Result<Void, TaskFailure>) -> Void)
        case capture((Result<CapturedStreams, TaskFailure>) -> Void)
    }

    /// Bytes that may wait in the transport before further writes are held back in the task's own queue.
    static let outputWatermark = 256 << 10

    package let record: TaskRecord
    package let loop: Loop

    // Everything below belongs to the loop's thread.
    var transport: (any Transport)?
    var opening: TransportOpening?
    private var target: Apart<OpeningTarget>?
    /// On the loop, a relay takes the bytes instead of the read queue.
    var relay: (any TransportConsumer)?
    /// The relay takes bytes now.
    var relayReads = false
    private var madeQueues: StreamQueues?
    var securing: SecuringStep?
    var suspensions: Int
    /// When the task was suspended, if it is; before its first resumption, the clock's origin.
    private var suspendedAt = MonotonicInstant(nanoseconds: 0)
    var ended = false
    var inputWasClosed = false
    /// A reader has been told of the end, or wanted no more.
    var readingIsOver = false
    /// `closeWrite` was carried out.
    var writingIsOver = false
    /// The transport is gone after both directions had ended in order: what came before is still to be read.
    var outlivesTransport = false
    /// Somebody looks on.
    var isTapped = false
    /// Made by the first deadline; a relayed task never makes it.
    private var timer: LoopTimer?
    /// Called once when the transport is ready for the task's bytes.
    package var openObserver: (() -> Void)?
    private var lastNumber: UInt64 = 0
    private var endObserver: ((TaskFailure?) -> Void)?

    /// A task that will connect to `target` when first resumed.
    package init(to target: OpeningTarget, on loop: Loop) {
        self.record = TaskRecord(state: .suspended)
        self.loop = loop
        self.target = .value(target)
        self.suspensions = 1
    }

    /// The task of an accepted connection: it runs from the start. On the loop.
    package init(adopting transport: any Transport) {
        self.record = TaskRecord(state: .running)
        self.loop = transport.loop
        self.suspensions = 0
        self.transportOpened(transport)
    }

    /// Made when first asked for, and then told what happened before.
    var queues: StreamQueues {
        if let made = self.madeQueues { return made }
        let made = StreamQueues()
        self.madeQueues = made
        if self.inputWasClosed { made.reads.inputClosed() }
        if self.ended {
            let failure = self.record.read { $0.failure } ?? .ended
            made.reads.fail(failure)
            made.sends.fail(failure)
        }
        return made
    }

    var queuesIfMade: StreamQueues? {
        self.madeQueues
    }

    func nextNumber() -> UInt64 {
        self.lastNumber += 1
        return self.lastNumber
    }

    func arm(at deadline: MonotonicInstant) {
        let timer = self.timer ?? LoopTimer()
        self.timer = timer
        self.loop.arm(timer, at: deadline, target: self)
    }

    func disarm() {
        if let timer = self.timer { self.loop.disarm(timer) }
    }

    var isRunning: Bool {
        self.suspensions == 0 && !self.ended
    }

    /// Where a timeout that begins now ends. Time in suspension is not counted: it is added at its end.
    func deadline(after timeout: Duration?) -> MonotonicInstant? {
        timeout.map { (self.suspensions > 0 ? self.suspendedAt : self.loop.now).advanced(by: $0) }
    }

    // MARK: Life, on the loop

    package func resumeOnLoop() {
        guard !self.ended, self.suspensions > 0 else { return }
        self.suspensions -= 1
        guard self.suspensions == 0 else { return }
        self.record.state = .running
        let away = self.suspendedAt.duration(to: self.loop.now)
        self.queuesIfMade?.reads.postpone(by: away)
        self.queuesIfMade?.sends.postpone(by: away)
        if let target = self.target {
            self.target = nil
            self.open(target.value)
        }
        guard self.relay != nil else { return self.advance() }
        self.runSends()
        if self.relayReads { self.transport?.resumeReading() }
    }

    package func suspendOnLoop() {
        guard !self.ended else { return }
        if self.suspensions == 0 { self.suspendedAt = self.loop.now }
        self.suspensions += 1
        self.record.state = .suspended
        self.transport?.pauseReading()
        self.disarm()
    }

    package func cancelOnLoop() {
        guard !self.ended else { return }
        self.record.state = .canceling
        self.finish(.cancelled)
    }

    private func open(_ target: OpeningTarget) {
        self.opening = TransportOpening(target, of: self.record, on: self.loop) { result in
            self.opening = nil
            switch result {
            case .success(let transport): self.transportOpened(transport)
            case .failure(let failure): self.finish(TaskFailure(failure))
            }
        }
    }

    func transportOpened(_ transport: any Transport) {
        self.transport = transport
        self.record.isConnected = true
        transport.consumer = self
        let facts = (transport as? SecureTransport)?.facts
        self.record.update {
            $0.localAddress = transport.localAddress
            $0.peerAddress = transport.peerAddress
            $0.tls = facts
        }
        self.record.markOpened(at: self.loop.now)
        let observer = self.openObserver
        self.openObserver = nil
        observer?()
        self.advance()
    }

    /// Calls `observer` once, on the loop, when the task is over (at once if it is): `nil` for a clean end.
    package func whenEnded(_ observer: @escaping (TaskFailure?) -> Void) {
        if self.ended { return observer(self.record.read { $0.failure }) }
        guard let earlier = self.endObserver else { return self.endObserver = observer }
        self.endObserver = { failure in
            earlier(failure)
            observer(failure)
        }
    }

    /// Drops whoever asked to hear of the end: the task has a new owner.
    package func forgetEndObservers() {
        self.endObserver = nil
    }

    /// Ends the task: answers everything that waits, resets the transport if it still lives.
    func finish(_ failure: TaskFailure?) {
        guard !self.ended else { return }
        self.ended = true
        self.disarm()
        self.opening?.cancel()
        self.opening = nil
        self.target = nil
        self.openObserver = nil
        self.relay = nil
        self.record.update { $0.failure = failure }
        self.securing?.transport?.reset()
        self.failWaiting(failure ?? .ended)
        self.madeQueues?.forgetObservers()
        self.record.state = .completed
        if let transport = self.transport {
            self.transport = nil
            transport.consumer = nil
            if failure != nil { transport.reset() } else { transport.close(linger: .seconds(5)) }
        }
        let observer = self.endObserver
        self.endObserver = nil
        observer?(failure)
    }

    private func failWaiting(_ failure: TaskFailure) {
        self.queuesIfMade?.reads.fail(failure)
        self.queuesIfMade?.sends.fail(failure)
        let securing = self.securing
        self.securing = nil
        securing?.completion(.failure(failure))
        // Barriers among them fail as the queues come to them.
        self.runReads()
        self.runSends()
    }
}
