import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol

/// A WebSocket to a peer, opened by this side or accepted, with queued messages.
///
/// Sends and receives requested before the opening handshake completes wait for it and then run in order. The task
/// answers pings and joins fragments. Usable from any thread.
///
/// - Source: RFC 6455; the URL loading system's `URLSessionWebSocketTask`; both roles are ours.
public final class WebSocketTask: @unchecked Sendable {  // The loop's thread alone changes what changes.
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

    /// Properties readable from any thread at any time that change rarely.
    struct Published: Sendable {
        var closeCode: CloseCode?
        var closeReason: [UInt8]?
        var isClosedByPeer = false
        var response: ResponseHead?
        var responseBody: [UInt8] = []
        var subprotocol: String?
    }

    /// How the connection ended or is ending.
    private struct Outcome {
        var failure: TaskFailure?
        var peerCloseCode: CloseCode?
        var peerCloseReason: [UInt8] = []
    }

    /// Bytes that may wait in the transport before our own sends are held back, and before answers to the peer (pongs,
    /// echoes) stop the reading.
    @inlinable package static var outputWatermark: Int { 256 << 10 }

    // First what each message touches, so that it is in one cache line: a message to many members of a room costs mostly
    // what it brings into the cache. All but `record`, `loop` and `published` belongs to the loop's thread.
    package let record: TaskRecord
    package let loop: Loop
    var transport: (any Transport)?
    /// The loop's own; `nil` without compression.
    var deflateContext: DeflateContext?
    package let role: Role
    /// At least one tap is attached.
    var isTapped = false
    var machine: WebSocketMachine
    /// Payload of the message that is being received in pieces.
    var receivedOfMessage: UInt32 = 0
    var engine: WebSocketEngine
    var relay: (any WebSocketRelay)?
    private let published = Mutex<Indirect<Published>?>(nil)
    package private(set) var options: WebSocketOptions
    /// Only between two WebSockets whose frames go over as they are.
    var forwarding: FrameForwarding?
    var client: OpeningState?
    /// Called once when the opening handshake is done.
    package var openObserver: (() -> Void)?
    let metrics: LoopTaskMetrics
    /// State that only a task with queued messages needs; a relayed one never makes it.
    private var madeQueues: MessageQueues?
    var keepAlive: KeepAliveState?
    /// Made by the first Pong that answers a ping of ours.
    private var roundTripsIfMeasured: Indirect<RoundTrips>?
    /// Made by the first Pong that waits for the kernel.
    private var queuedPongsIfAny: Indirect<QueuedPongs>?
    /// Stored outside, because a running task has none.
    private var outcome: Indirect<Outcome>?
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
        self.machine = WebSocketMachine(startsPaused: startsPaused)
        self.metrics = LoopTaskMetrics.shared(on: loop)
        self.role = .client
        self.engine = WebSocketEngine(role: .client, maximumMessageSize: options.maximumMessageSize)
    }

    /// Makes the server's task of a connection whose opening request was accepted. On the loop; sends `response` and is
    /// open at once.
    /// - Parameters:
    ///   - deflate: the negotiated parameters; `nil` for no compression.
    ///   - response: the 101 response to send.
    package init(
        accepting transport: any Transport, response: [UInt8], subprotocol: String?, deflate: NegotiatedDeflate?,
        options: WebSocketOptions = WebSocketOptions(), relay: (any WebSocketRelay)? = nil, startsPaused: Bool = false
    ) {
        self.record = TaskRecord(state: .running)
        self.loop = transport.loop
        self.options = options
        self.relay = relay
        self.machine = WebSocketMachine(startsPaused: startsPaused)
        self.metrics = LoopTaskMetrics.shared(on: transport.loop)
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
        self.engine.setMaximumMessageSize(options.maximumMessageSize)
    }

    /// From any thread.
    func published<R: Sendable>(_ read: (Published) -> R) -> R {
        self.published.withLock { read($0?.value ?? Published()) }
    }

    func publish(_ change: (inout Published) -> Void) {
        self.published.withLock {
            var metadata = $0?.value ?? Published()
            change(&metadata)
            $0 = .value(metadata)
        }
    }

    /// How long our pings took to be answered; `nil` while none was.
    package internal(set) var roundTrips: RoundTrips? {
        get { self.roundTripsIfMeasured?.value }
        set { self.roundTripsIfMeasured = newValue.map { .value($0) } }
    }

    var queuedPongs: QueuedPongs? {
        get { self.queuedPongsIfAny?.value }
        set { self.queuedPongsIfAny = newValue.map { .value($0) } }
    }

    var keys: MaskingKeys { self.metrics.keys }

    var queues: MessageQueues {
        if let made = self.madeQueues { return made }
        let made = MessageQueues()
        self.madeQueues = made
        return made
    }

    var queuesIfMade: MessageQueues? {
        self.madeQueues
    }

    /// A Close waits for messages before it.
    var isCloseQueued: Bool { self.madeQueues?.outgoing.containsClose ?? false }

    func nextNumber() -> UInt64 {
        self.lastNumber += 1
        return self.lastNumber
    }

    // MARK: Opening and ending, on the loop

    func adopt(_ transport: any Transport) {
        self.transport = transport
        transport.consumer = self
        self.record.connected(transport)
    }

    /// The opening handshake is done.
    func opened(_ deflate: NegotiatedDeflate?) {
        self.machine.openingCompleted()
        self.record.state = .running
        self.record.markOpened(at: self.loop.now)
        if let deflate {
            let context = self.loop.local(DeflateContext.self) { DeflateContext() }
            self.deflateContext = context
            self.engine.startDeflate(deflate.parameters, policy: deflate.policy, context: context)
        }
        self.startKeepAlive()
        self.openObserver.take()?()
        self.relay?.webSocketOpened()
        self.sendWaiting()
        self.updateReading()
    }

    /// Calls `observer` once, on the loop, when the task is over; at once if it is.
    package func whenEnded(_ observer: @escaping (WebSocketEnd) -> Void) {
        self.loop.assertOnLoop()
        if self.machine.hasEnded { return observer(self.end) }
        guard let earlier = self.endObserver else { return self.endObserver = observer }
        self.endObserver = { end in
            earlier(end)
            observer(end)
        }
    }

    /// Calls `observer` once, on the loop, when the peer's Close frame takes effect; before `whenEnded`. Not for relays.
    package func whenPeerClosed(_ observer: @escaping (CloseCode?, [UInt8]) -> Void) {
        self.loop.assertOnLoop()
        self.queues.closeObserver = observer
    }

    private var end: WebSocketEnd {
        let outcome = self.outcome?.value ?? Outcome()
        return WebSocketEnd(
            isClean: outcome.failure == nil, code: outcome.peerCloseCode, reason: outcome.peerCloseReason,
            failure: outcome.failure)
    }

    /// The failure; `nil` if there is none so far.
    var failure: TaskFailure? {
        get { self.outcome?.value.failure }
        set {
            var outcome = self.outcome?.value ?? Outcome()
            outcome.failure = newValue
            self.outcome = .value(outcome)
        }
    }

    func reportPeerClose(_ code: CloseCode?, reason: [UInt8]) {
        var outcome = self.outcome?.value ?? Outcome()
        (outcome.peerCloseCode, outcome.peerCloseReason) = (code, reason)
        self.outcome = .value(outcome)
    }

    /// Removes the end observers: the task has a new owner.
    package func forgetEndObservers() {
        self.endObserver = nil
    }

    /// Ends the task; its transport has ended, or is being closed.
    func finish() {
        guard self.machine.end() else { return }
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
        self.forwarding = nil
        let end = self.end
        self.relay.take()?.webSocketEnded(end)
        self.endObserver.take()?(end)
    }
}

/// The task from any thread.
extension WebSocketTask {
    /// Sends one message after those queued earlier; returns when the kernel has taken every byte.
    ///
    /// Cancelling the awaiting Swift task withdraws the message if sending has not begun; otherwise it is sent whole.
    /// - Throws: `TaskFailure`.
    public func send(_ message: Message) async throws(TaskFailure) {
        try await AwaitedOperation.result(on: self.loop) {
            self.send(message, $0)
        } withdraw: {
            self.withdrawSend($0)
        }
    }

    /// Returns the next message in order of arrival; receivers are served in the order of their calls.
    ///
    /// A Close frame, or a violation of the protocol, takes effect when the messages before it were received and the
    /// next one is requested, but after a second at the latest: until then the last message can still be answered.
    ///
    /// Cancelling the awaiting Swift task loses no message: one that was not delivered goes to the next receiver.
    /// - Throws: `TaskFailure`; `.closed` after a clean end.
    public func receive() async throws(TaskFailure) -> Message {
        try await AwaitedOperation.result(on: self.loop) {
            self.receive($0)
        } withdraw: {
            self.withdrawReceive($0)
        }
    }

    /// Returns the next message if it is accepted; one that is refused stays the next message for other receivers.
    /// - Parameter accepts: called on the loop.
    /// - Returns: `nil` if the message was refused.
    /// - Throws: as `receive`.
    package func receive(
        where accepts: @escaping @Sendable (Message) -> Bool
    ) async throws(TaskFailure) -> Message? {
        typealias Completion = @Sendable (Result<Message?, TaskFailure>) -> Void
        return try await AwaitedOperation.result(on: self.loop) { (completion: @escaping Completion) in
            let condition = MessageInbox.Condition(accepts: accepts) { completion(.success(nil)) }
            return self.receive(on: condition) { completion($0.map(Optional.some)) }
        } withdraw: {
            self.withdrawReceive($0)
        }
    }

    /// Sends a Ping and returns when its Pong is there. Pings are answered in their order.
    ///
    /// Cancelling the awaiting Swift task ends the wait; a Ping already sent stays sent.
    /// - Throws: `TaskFailure`, if the connection ends first.
    public func sendPing() async throws(TaskFailure) {
        try await AwaitedOperation.result(on: self.loop) {
            self.sendPing([], $0)
        } withdraw: {
            self.withdrawSend($0)
        }
    }

    /// Begins the closing handshake after everything sent before. Waiting receives fail once the peer's Close frame
    /// arrives.
    /// - Parameters:
    ///   - code: a code that must not be sent becomes 1000.
    ///   - reason: UTF-8; cut at a character to 123 bytes.
    public func cancel(with code: CloseCode, reason: [UInt8] = []) {
        self.loop.execute { self.close(code, reason: reason) }
    }

    /// Ends the task without waiting for the peer: a Close frame without a code if the handshake was done, and
    /// all waiting operations fail with `.cancelled`.
    public func cancel() {
        self.record.state = .canceling
        self.loop.execute { self.cancelOnLoop() }
    }

    /// Suspends the task: until it is resumed nothing is read, and messages and pings wait.
    public func suspend() {
        self.loop.execute { self.suspendOnLoop() }
    }

    /// Starts the task, which connects and shakes hands; or ends its suspension.
    public func resume() {
        self.loop.execute { self.resumeOnLoop() }
    }

    /// The code of the first Close frame, ours or the peer's (1005 for one without a code); `nil` while there was none.
    public var closeCode: CloseCode? { self.published { $0.closeCode } }
    /// The reason in that Close frame; `nil` for none.
    public var closeReason: [UInt8]? { self.published { $0.closeReason } }
    /// Whether that Close frame is the peer's.
    package var isClosedByPeer: Bool { self.published { $0.isClosedByPeer } }
    /// The subprotocol that was chosen.
    public var subprotocol: String? { self.published { $0.subprotocol } }
    /// The server's answer to the opening handshake, a refusal too; `nil` before, and on a server.
    public var response: ResponseHead? { self.published { $0.response } }
    /// The first bytes of a refusal's body, at most 16 KiB.
    public var responseBody: [UInt8] { self.published { $0.responseBody } }
}

/// Suspension, on the loop.
extension WebSocketTask {
    /// Until the task is resumed nothing is read, messages and pings of its user wait in its queue, no keep-alive Ping is
    /// sent, and no timer runs; frames of a relay are still sent. Not counted. An opening handshake in progress restarts
    /// then. A task that is closing, or whose Close waits for messages before it, is not suspended.
    package func suspendOnLoop() {
        self.loop.assertOnLoop()
        guard !self.isCloseQueued else { return }
        // A refusal whose body is not complete is an end.
        if self.machine.isOpening, !self.isSuspended, let failure = self.failure { return self.endOpening(failure) }
        let action = self.machine.suspend()
        guard action != .ignore else { return }
        self.record.state = .suspended
        self.loop.disarm(self.timer)
        switch action {
        case .ignore: break
        case .pauseReading: self.transport?.pauseReading()
        case .leaveOpening:
            guard let client = self.client, !client.isAwaitingDecision else { return }
            client.connecting?.cancel()
            self.client = OpeningState(client.opening)
            self.leaveTransport()
        }
    }

    func endSuspension() {
        let action = self.machine.endSuspension()
        guard action != .ignore else { return }
        self.record.state = .running
        switch action {
        case .ignore, .run: return
        case .waitForReceivers: self.waitForReceivers()
        case .resume:
            guard var state = self.keepAlive else { break }
            // Silence does not count while reading was suspended.
            state.peerResponded()
            self.keepAlive = state
            self.loop.arm(self.timer, at: state.deadline(timeout: self.options.pongTimeout), target: self)
        }
        self.updateReading()
        self.sendWaiting()
    }
}

/// Properties and operations for the control plane, on the loop.
extension WebSocketTask {
    package var isSuspended: Bool { self.machine.isSuspended }

    /// Phase of the connection.
    package var stage: TaskStage {
        switch self.machine.phase {
        case .opening: .opening
        case .open: .open
        case .closing, .closeReceived, .draining: .closing
        case .ended: .closed
        }
    }

    /// Whether messages are passed on instead of queued for `receive`.
    package var isRelayed: Bool {
        self.relay != nil
    }

    /// Messages and pings that wait here for their turn.
    package var waitingMessages: Int {
        self.queuesIfMade?.outgoing.waitingCount ?? 0
    }

    /// Bytes for the peer that the transport was not given yet: of messages that wait here for their turn, and what a
    /// relay keeps.
    package var waitingBytes: Int {
        (self.queuesIfMade?.outgoing.waitingBytes ?? 0) + (self.relay?.unconsumedBytes ?? 0)
    }

    /// Number of messages received without a receiver.
    package var unreadMessages: Int {
        self.queuesIfMade?.inbox.messageCount ?? 0
    }

    package var unreadBytes: Int {
        self.queuesIfMade?.inbox.bytes ?? 0
    }
}

extension WebSocketTask {
    /// How the connection ended or is ending, and the negotiated parameters of the opening handshake.
    package struct Metadata: Sendable, Hashable {
        package let closeCode: CloseCode?
        package let closeReason: [UInt8]?
        package let subprotocol: String?
    }

    /// From any thread.
    package var metadata: Metadata {
        self.published {
            Metadata(
                closeCode: $0.closeCode, closeReason: $0.closeReason, subprotocol: $0.subprotocol)
        }
    }
}

extension WebSocketTask {
    /// Attaches a tap. On the loop.
    package func add(_ tap: TaskTap) {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        self.metrics.add(tap, to: self.record)
        self.isTapped = true
    }

    package func remove(_ tap: TaskTap) {
        self.loop.assertOnLoop()
        self.isTapped = self.metrics.remove(tap, from: self.record)
    }

    func show(
        _ way: TapPiece.Way, _ kind: MessageKind, _ bytes: RawSpan, startsMessage: Bool, endsMessage: Bool
    ) {
        self.metrics.recordPiece(
            self.record, way, kind == .text ? .text : .binary, bytes, startsMessage: startsMessage,
            endsMessage: endsMessage)
    }
}

/// Options of a WebSocket task, set before it opens. Copies share their memory until one is changed, so that many
/// connections with the same options hold them once.
public struct WebSocketOptions: Sendable, Hashable {
    private struct Values: Sendable, Hashable {
        var maximumMessageSize: Int? = 1 << 20
        var pingInterval: Duration?
        var pongTimeout: Duration = .seconds(20)
        var handshakeTimeout: Duration = .seconds(10)
        var closeTimeout: Duration = .seconds(5)
    }

    private static let defaults = Indirect.value(Values())

    private var kept = Self.defaults

    public init() {}

    /// Longest message accepted, in bytes, summed over its fragments after inflation; a longer one fails the connection
    /// with 1009. `nil`: no limit, only sensible where messages are not assembled. Default: 1 MiB.
    public var maximumMessageSize: Int? {
        get { self.kept.value.maximumMessageSize }
        set { self.kept.value.maximumMessageSize = newValue }
    }

    /// Between keep-alive pings; `nil` sends none. Default: none.
    public var pingInterval: Duration? {
        get { self.kept.value.pingInterval }
        set { self.kept.value.pingInterval = newValue }
    }

    /// How long the peer may stay silent after a keep-alive ping before it counts as gone. Default: 20 s.
    public var pongTimeout: Duration {
        get { self.kept.value.pongTimeout }
        set { self.kept.value.pongTimeout = newValue }
    }

    /// From the connection's being ready to the end of the opening handshake. Default: 10 s.
    public var handshakeTimeout: Duration {
        get { self.kept.value.handshakeTimeout }
        set { self.kept.value.handshakeTimeout = newValue }
    }

    /// How long to wait for the peer's Close frame and the end of the connection after our own Close. Default: 5 s.
    public var closeTimeout: Duration {
        get { self.kept.value.closeTimeout }
        set { self.kept.value.closeTimeout = newValue }
    }
}

/// How a WebSocket ended.
public struct WebSocketEnd: Sendable, Hashable {
    /// Whether both Close frames were exchanged (RFC 6455 §7.1.4).
    public let isClean: Bool
    /// The code of the peer's Close frame; `nil` without a Close frame, or without a code in it.
    public let code: CloseCode?
    /// The reason in the peer's Close frame: UTF-8, at most 123 bytes.
    public let reason: [UInt8]
    /// The failure; `nil` after a clean end.
    public let failure: TaskFailure?
}

/// An end of the connection that arrived after a message still being processed by its receiver.
enum DeferredEnd {
    case close(CloseCode?, reason: [UInt8])
    case violation(PeerViolation)
}
