import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol

/// A WebSocket to a peer, opened towards it or accepted from it, with messages that queue.
///
/// Sends and receives asked for before the opening handshake is done wait for it and then run in order. Pings are
/// answered, and fragments joined, without the caller's help. Usable from any thread.
///
/// - Source: RFC 6455; the URL loading system's `URLSessionWebSocketTask`; both roles are ours.
public final class WebSocketTask: @unchecked Sendable {
    /// One whole message.
    public enum Message: Sendable, Hashable {
        case data([UInt8])
        case string(String)

        /// Bytes of payload.
        var count: Int {
            switch self {
            case .data(let bytes): bytes.count
            case .string(let text): text.utf8.count
            }
        }
    }

    enum Phase {
        /// Not connected, or not yet through with the opening handshake.
        case opening
        case open
        /// Our Close frame is out; the peer's has not come.
        case closing
        /// Both Close frames are through, or the connection failed: only the transport's end is missing.
        case draining
        case ended
    }

    /// What is readable at any time from any thread, and changes rarely.
    struct Published: Sendable {
        var closeCode: CloseCode?
        var closeReason: [UInt8]?
        var response: ResponseHead?
        var responseBody: [UInt8] = []
        var subprotocol: String?
    }

    /// What is known of the end.
    private struct Outcome {
        var failure: TaskFailure?
        var peerCloseCode: CloseCode?
        var peerCloseReason: [UInt8] = []
    }

    /// Bytes that may wait in the transport before our own sends are held back, and before answers to the peer (pongs,
    /// echoes) stop the reading.
    @inlinable package static var outputWatermark: Int { 256 << 10 }

    package let record: TaskRecord
    package let loop: Loop
    private let published = Mutex<Apart<Published>?>(nil)

    // Everything below belongs to the loop's thread.
    package private(set) var options: WebSocketOptions
    var transport: (any Transport)?
    var engine: WebSocketEngine
    var phase = Phase.opening
    var relay: (any WebSocketRelay)?
    /// Only between two WebSockets whose frames go over as they are.
    var forwarding: FrameForwarding?
    var client: OpeningState?
    /// Called once when the opening handshake is done.
    package var openObserver: (() -> Void)?
    var share: DeflateShare?
    let tally: LoopTally
    package let role: Role
    /// Payload of the message that is being received in pieces. Where the role leaves room for it.
    var receivedOfMessage: UInt32 = 0
    /// What only a task with a queue of messages needs; a relayed one never makes it.
    private var madeQueues: MessageQueues?
    var keepAlive: KeepAliveState?
    /// Made by the first Pong that answers a ping of ours.
    private var madeRoundTrips: Apart<RoundTrips>?
    /// Apart, because a task that goes on has none.
    private var outcome: Apart<Outcome>?
    var closeCameFromPeer = false
    /// The peer's Close frame came, and the relay has yet to answer it: until then data may still be sent.
    var owesClose = false
    /// What ends the connection has come, and waits for who has a message before it in hand.
    var holdsEnd = false
    var readingStopped = false
    /// A message went out in part: until its rest has, none of another kind may begin.
    var isInsideMessage = false
    /// Somebody looks on.
    var isTapped = false
    /// As `isSuspended`, stored apart from what other modules see of it: what only this module touches costs no check of
    /// exclusive access.
    var suspended = false
    package var isSuspended: Bool { self.suspended }
    var wantsReading = true
    let timer = LoopTimer()
    private var lastNumber: UInt64 = 0
    private var endObserver: ((WebSocketEnd) -> Void)?

    /// A task that will connect and shake hands when first resumed. To be made on the loop.
    /// - Parameters:
    ///   - opening: `nil` for a task that learns by `open` where to connect to.
    ///   - startsPaused: no frame is read before `resumeReading`, for a relay that has yet to be attached.
    package init(
        opening: ClientOpening?, on loop: Loop, options: WebSocketOptions = WebSocketOptions(),
        startsPaused: Bool = false
    ) {
        self.record = TaskRecord(state: .suspended)
        self.loop = loop
        self.options = options
        self.client = opening.map { OpeningState($0) }
        self.wantsReading = !startsPaused
        self.tally = LoopTally.shared(on: loop)
        self.role = .client
        self.engine = WebSocketEngine(role: .client, maximumMessageSize: options.maximumMessageSize)
    }

    /// The server's task of a connection whose opening request was accepted. On the loop; sends `response` and is open
    /// at once.
    /// - Parameters:
    ///   - deflate: what was agreed in the response; `nil` for no compression.
    ///   - response: the 101 response as it goes out.
    package init(
        accepting transport: any Transport, response: [UInt8], subprotocol: String?, deflate: NegotiatedDeflate?,
        options: WebSocketOptions = WebSocketOptions(), relay: (any WebSocketRelay)? = nil, startsPaused: Bool = false
    ) {
        self.record = TaskRecord(state: .running)
        self.loop = transport.loop
        self.options = options
        self.relay = relay
        self.wantsReading = !startsPaused
        self.tally = LoopTally.shared(on: transport.loop)
        self.role = .server
        self.engine = WebSocketEngine(role: .server, maximumMessageSize: options.maximumMessageSize)
        self.adopt(transport)
        response.withRawSpan { transport.write($0) }
        if subprotocol != nil { self.publish { $0.subprotocol = subprotocol } }
        self.opened(deflate)
    }

    /// Changes what may be set: the message limit at once, all else as far as it has not been used yet.
    package func set(_ options: WebSocketOptions) {
        self.options = options
        self.engine.limitMessages(to: options.maximumMessageSize)
    }

    /// From any thread.
    func published<R: Sendable>(_ read: (Published) -> R) -> R {
        self.published.withLock { read($0?.value ?? Published()) }
    }

    func publish(_ change: (inout Published) -> Void) {
        self.published.withLock {
            var facts = $0?.value ?? Published()
            change(&facts)
            $0 = .value(facts)
        }
    }

    /// How long our pings took to be answered; `nil` while none was.
    package internal(set) var roundTrips: RoundTrips? {
        get { self.madeRoundTrips?.value }
        set { self.madeRoundTrips = newValue.map { .value($0) } }
    }

    var keys: MaskingKeys { self.tally.keys }

    var queues: MessageQueues {
        if let made = self.madeQueues { return made }
        let made = MessageQueues()
        self.madeQueues = made
        return made
    }

    var queuesIfMade: MessageQueues? {
        self.madeQueues
    }

    func nextNumber() -> UInt64 {
        self.lastNumber += 1
        return self.lastNumber
    }

    // MARK: Life, on the loop

    func adopt(_ transport: any Transport) {
        self.transport = transport
        self.record.isConnected = true
        transport.consumer = self
        let facts = (transport as? SecureTransport)?.facts
        self.record.update {
            $0.localAddress = transport.localAddress
            $0.peerAddress = transport.peerAddress
            $0.tls = facts
        }
    }

    /// The opening handshake is done.
    func opened(_ deflate: NegotiatedDeflate?) {
        self.phase = .open
        self.record.state = .running
        self.record.markOpened(at: self.loop.now)
        if let deflate {
            let share = self.loop.local(DeflateShare.self) { DeflateShare() }
            self.share = share
            self.engine.startDeflate(deflate.parameters, policy: deflate.policy, share: share)
        }
        self.startKeepAlive()
        let observer = self.openObserver
        self.openObserver = nil
        observer?()
        self.relay?.webSocketOpened()
        self.sendWaiting()
        self.updateReading()
    }

    /// Calls `observer` once, on the loop, when the task is over; at once if it is.
    package func whenEnded(_ observer: @escaping (WebSocketEnd) -> Void) {
        if self.phase == .ended { return observer(self.end) }
        guard let earlier = self.endObserver else { return self.endObserver = observer }
        self.endObserver = { end in
            earlier(end)
            observer(end)
        }
    }

    /// Calls `observer` once, on the loop, when the peer's Close frame takes effect; before `whenEnded`. Not for relays.
    package func whenPeerClosed(_ observer: @escaping (CloseCode?, [UInt8]) -> Void) {
        self.queues.closeObserver = observer
    }

    private var end: WebSocketEnd {
        let outcome = self.outcome?.value ?? Outcome()
        return WebSocketEnd(
            isClean: outcome.failure == nil, code: outcome.peerCloseCode, reason: outcome.peerCloseReason,
            failure: outcome.failure)
    }

    /// What went wrong; `nil` while nothing has.
    var failure: TaskFailure? {
        get { self.outcome?.value.failure }
        set {
            var outcome = self.outcome?.value ?? Outcome()
            outcome.failure = newValue
            self.outcome = .value(outcome)
        }
    }

    func peerSaid(_ code: CloseCode?, reason: [UInt8]) {
        var outcome = self.outcome?.value ?? Outcome()
        (outcome.peerCloseCode, outcome.peerCloseReason) = (code, reason)
        self.outcome = .value(outcome)
    }

    /// Drops whoever asked to hear of the end: the task has a new owner.
    package func forgetEndObservers() {
        self.endObserver = nil
    }

    /// Ends the task; the transport is gone or has its orders.
    func finish() {
        guard self.phase != .ended else { return }
        self.phase = .ended
        self.holdsEnd = false
        self.loop.disarm(self.timer)
        self.transport?.consumer = nil
        self.transport = nil
        self.client?.connecting?.cancel()
        self.client = nil
        self.openObserver = nil
        self.record.update { $0.failure = self.failure }
        self.failWaiting()
        self.madeQueues?.closeObserver = nil
        self.record.state = .completed
        let relay = self.relay
        self.relay = nil
        self.forwarding = nil
        let end = self.end
        relay?.webSocketEnded(end)
        let observer = self.endObserver
        self.endObserver = nil
        observer?(end)
    }
}
