import ByteKernels
import Foundation
import StreamTransport
import Synchronization

/// A session's connection to the daemon: attaches, starts the daemon if there is none, and attaches again when it is lost.
///
/// Thread-safe; events are delivered on the loop, in order.
package final class DaemonLink: @unchecked Sendable {  // `machine` is used on the loop only.
    /// How long a request may take, a restart of the daemon included.
    package static let requestTimeout = Duration.seconds(10)

    package enum Event: Sendable {
        case message(DaemonMessage)
        /// Attached again, after the daemon was lost: `ready` and the messages follow.
        case reattached
        /// There is no daemon any more; the last event.
        case lost(DaemonLinkFailure)
    }

    package let loop: Loop
    private var machine: LinkMachine

    /// - Parameters:
    ///   - hello: the first message; with `isReattachment` set, it is repeated after a loss.
    ///   - start: starts the daemon; called on a thread that may wait, and again when the started one cannot be reached.
    package init(
        on loop: Loop, folders: TransferFolders, attachment: SessionAttachment,
        start: @escaping @Sendable () -> DaemonLinkFailure?
    ) {
        self.loop = loop
        self.machine = LinkMachine(on: loop, folders: folders, hello: .session(attachment), start: start)
    }

    /// A connection that takes no session.
    package init(observing folders: TransferFolders, on loop: Loop, start: @escaping @Sendable () -> DaemonLinkFailure?)
    {
        self.loop = loop
        self.machine = LinkMachine(on: loop, folders: folders, hello: .observer, start: start)
    }

    /// Attaches, and waits for that at most `timeout`. Must not be called on the loop.
    /// - Parameter handler: gets the events from then on, those that arrived before included.
    package func attach(
        within timeout: Duration, _ handler: @escaping @Sendable (Event) -> Void
    ) -> DaemonLinkFailure? {
        let answer = BlockingResult<DaemonLinkFailure?>()
        self.loop.execute { self.machine.open(within: timeout, handler) { answer.give($0) } }
        return answer.wait(timeout + .seconds(1)) ?? .unreachable("it did not answer in time")
    }

    /// Sends a request, and waits for its answer at most `requestTimeout`. On the loop it is sent without waiting.
    package func perform(_ request: SessionRequest) -> Result<RequestOutcome, DaemonLinkFailure> {
        self.perform { .request(number: $0, request) }
    }

    /// As `perform`; the session keeps the settings when it attaches to another daemon.
    package func configure(_ settings: SessionSettings) -> Result<RequestOutcome, DaemonLinkFailure> {
        self.loop.execute { self.machine.configured(settings) }
        return self.perform(.configure(settings))
    }

    /// As `perform`, for a session of another program.
    package func steer(
        _ verb: ControlVerb, _ task: Int, of session: String
    ) -> Result<RequestOutcome, DaemonLinkFailure> {
        self.perform { .steer(number: $0, session: session, task: task, verb) }
    }

    private func perform(
        _ message: @escaping @Sendable (Int) -> ClientMessage
    ) -> Result<RequestOutcome, DaemonLinkFailure> {
        let answer = BlockingResult<Result<RequestOutcome, DaemonLinkFailure>>()
        guard !self.loop.isCurrent else {
            self.machine.perform(message) { _ in }
            return .success(.done)
        }
        self.loop.execute { self.machine.perform(message) { answer.give($0) } }
        return answer.wait(Self.requestTimeout) ?? .failure(.unreachable("it did not answer in time"))
    }

    /// Lets the session go. No more events.
    package func close() {
        self.loop.execute { self.machine.close() }
    }
}

/// Why a session has no daemon.
package enum DaemonLinkFailure: Error, Hashable, Sendable {
    case refused(Refusal)
    /// No daemon can be started.
    case cannotStart(String)
    case unreachable(String)
    /// The socket is that of another user.
    case foreignUser
    case closed

    package var text: String {
        switch self {
        case .refused(.inUse): "Another program uses the background session of this identifier."
        case .refused(.version):
            "The daemon of background sessions is of another version than this program: end it, or update one of them."
        case .refused(.busy): "The daemon of background sessions accepts no more programs or sessions."
        case .refused(.malformed): "The daemon of background sessions does not understand this program."
        case .cannotStart(let text): text
        case .unreachable(let text): "The daemon of background sessions cannot be reached: \(text)."
        case .foreignUser: "The socket of the daemon of background sessions belongs to another user."
        case .closed: "The background session is closed."
        }
    }
}

/// A value that one thread waits for.
private final class BlockingResult<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    func give(_ value: Value) {
        self.value.withLock { $0 = value }
        self.semaphore.signal()
    }

    func wait(_ timeout: Duration) -> Value? {
        let milliseconds = timeout.components.seconds * 1000
        _ = self.semaphore.wait(timeout: .now() + .milliseconds(Int(clamping: milliseconds)))
        return self.value.withLock { $0 }
    }
}

/// The connection itself, on its loop.
private final class LinkMachine {
    enum Hello {
        case session(SessionAttachment)
        case observer
    }

    private enum State {
        case idle
        /// Tries to connect until the deadline.
        case connecting(until: MonotonicInstant)
        /// Connected; the answer to the first message is awaited until the deadline.
        case attaching(SocketConnection, until: MonotonicInstant)
        case attached(SocketConnection)
        case closed
    }

    private struct Pending {
        let number: Int
        let message: (Int) -> ClientMessage
        let answer: (Result<RequestOutcome, DaemonLinkFailure>) -> Void
        let deadline: MonotonicInstant
    }

    /// Between two attempts to connect: the first and the longest.
    private static let pauses = (Duration.milliseconds(10), Duration.milliseconds(500))
    /// How long to try to reach a lost daemon.
    private static let reconnectLimit = Duration.seconds(30)
    /// Between two attempts to start a daemon.
    private static let startInterval = Duration.milliseconds(150)

    private let loop: Loop
    private let folders: TransferFolders
    private var hello: Hello
    private let start: @Sendable () -> DaemonLinkFailure?
    private let timer = LoopTimer()
    private var state = State.idle
    private var reader = MessageReader<DaemonMessage>()
    private var pause = LinkMachine.pauses.0
    private var lastStart: MonotonicInstant?
    private var hasBeenAttached = false
    private var opened: ((DaemonLinkFailure?) -> Void)?
    private var handler: (@Sendable (DaemonLink.Event) -> Void)?
    /// Requests without an answer, in the order of their numbers. Each belongs to a thread that waits for it.
    private var pending: [Pending] = []
    private var lastNumber = 0

    init(
        on loop: Loop, folders: TransferFolders, hello: Hello, start: @escaping @Sendable () -> DaemonLinkFailure?
    ) {
        self.loop = loop
        self.folders = folders
        self.hello = hello
        self.start = start
    }

    func open(
        within timeout: Duration, _ handler: @escaping @Sendable (DaemonLink.Event) -> Void,
        _ opened: @escaping (DaemonLinkFailure?) -> Void
    ) {
        guard case .idle = self.state else { return opened(.closed) }
        self.handler = handler
        self.opened = opened
        self.state = .connecting(until: self.loop.now.advanced(by: timeout))
        self.connect()
    }

    // MARK: Connecting

    private func connect() {
        guard case .connecting(let deadline) = self.state else { return }
        switch self.loop.system.connect(.unix(path: self.folders.socket)) {
        case .success(let descriptor): self.connected(descriptor, until: deadline)
        case .failure(let error):
            if error == .nameTooLong { return self.fail(.unreachable("the path \(self.folders.socket) is too long")) }
            if self.loop.now >= deadline { return self.fail(self.unreachable("\(error)")) }
            if error == .noSuchFile || error == .refused { self.startDaemon() }
            self.tryLater()
        }
    }

    /// A daemon that was started says in its log why it does not serve.
    private func unreachable(_ reason: String) -> DaemonLinkFailure {
        .unreachable(self.lastStart == nil ? reason : "\(reason); see its log \(self.folders.log)")
    }

    private func tryLater() {
        self.loop.arm(self.timer, after: self.pause, target: self)
        self.pause = min(Self.pauses.1, self.pause * 2)
    }

    private func startDaemon() {
        let now = self.loop.now
        if let lastStart, now < lastStart.advanced(by: Self.startInterval) { return }
        self.lastStart = now
        // It listens soon.
        self.pause = Self.pauses.0
        let (start, box) = (self.start, LoopIsolated(self, on: self.loop))
        SystemThread.start(named: "start-daemon") {
            guard let failure = start() else { return }
            box.execute { $0.cannotStart(failure) }
        }
    }

    private func cannotStart(_ failure: DaemonLinkFailure) {
        if case .connecting = self.state { self.fail(failure) }
    }

    private func connected(_ descriptor: Descriptor, until deadline: MonotonicInstant) {
        guard PeerCredentials.user(of: descriptor) == PeerCredentials.ownUser else {
            self.loop.system.close(descriptor)
            return self.fail(.foreignUser)
        }
        guard let connection = try? SocketConnection(adopting: descriptor, peer: nil, on: self.loop) else {
            return self.fail(.unreachable("no descriptor is left"))
        }
        connection.consumer = self
        self.reader = MessageReader()
        self.state = .attaching(connection, until: deadline)
        switch self.hello {
        case .session(var attachment):
            attachment.isReattachment = self.hasBeenAttached
            self.send(.attach(attachment), on: connection)
        case .observer: self.send(.observe(version: TransferProtocol.version), on: connection)
        }
        self.loop.arm(self.timer, at: deadline, target: self)
    }

    private func send(_ message: ClientMessage, on connection: SocketConnection) {
        guard let frame = try? MessageFraming.encode(message) else { return }
        _ = frame.withRawSpan { connection.write($0) }
    }

    // MARK: Requests

    func perform(
        _ message: @escaping (Int) -> ClientMessage,
        _ answer: @escaping (Result<RequestOutcome, DaemonLinkFailure>) -> Void
    ) {
        if case .closed = self.state { return answer(.failure(.closed)) }
        let now = self.loop.now
        self.forgetExpired()
        self.lastNumber += 1
        let number = self.lastNumber
        if let problem = self.problem(of: message(number)) { return answer(.success(.refused(problem))) }
        self.pending.append(
            Pending(
                number: number, message: message, answer: answer, deadline: now.advanced(by: DaemonLink.requestTimeout))
        )
        if case .attached(let connection) = self.state { self.send(message(number), on: connection) }
    }

    /// Their threads have given up, and their tasks failed: a daemon that is reached later must not carry them out.
    private func forgetExpired() {
        let now = self.loop.now
        self.pending.removeAll { $0.deadline <= now }
    }

    /// Attaches with these settings from now on.
    func configured(_ settings: SessionSettings) {
        guard case .session(var attachment) = self.hello else { return }
        attachment.settings = settings
        self.hello = .session(attachment)
    }

    private func problem(of message: ClientMessage) -> TransferError? {
        guard (try? MessageFraming.encode(message)) == nil else { return nil }
        return TransferError(
            code: URLError.Code.dataLengthExceedsMaximum.rawValue,
            text: "The request is too large for a background session: send its body from a file.")
    }

    // MARK: Messages

    private func received(_ message: DaemonMessage) {
        switch (message, self.state) {
        case (.reply(let number, let outcome), _):
            guard let index = self.pending.firstIndex(where: { $0.number == number }) else { return }
            self.pending.remove(at: index).answer(.success(outcome))
        case (.refused(.inUse), .attaching(let connection, let deadline)) where self.hasBeenAttached:
            // The daemon has not noticed yet that the earlier connection is gone.
            self.state = .connecting(until: deadline)
            connection.close(linger: .zero)
            self.tryLater()
        case (.refused(let refusal), _): self.fail(.refused(refusal))
        case (.ready, .attaching(let connection, _)):
            self.attached(connection)
            self.handler?(.message(message))
        default: self.handler?(.message(message))
        }
    }

    private func attached(_ connection: SocketConnection) {
        self.state = .attached(connection)
        self.loop.disarm(self.timer)
        self.pause = Self.pauses.0
        self.lastStart = nil
        if self.hasBeenAttached { self.handler?(.reattached) }
        self.hasBeenAttached = true
        let opened = self.opened
        self.opened = nil
        opened?(nil)
        self.forgetExpired()
        for request in self.pending { self.send(request.message(request.number), on: connection) }
    }

    // MARK: Ending

    private func lost() {
        switch self.state {
        case .attached:
            self.state = .connecting(until: self.loop.now.advanced(by: Self.reconnectLimit))
            self.connect()
        case .attaching(_, let deadline):
            self.state = .connecting(until: deadline)
            if self.loop.now >= deadline {
                self.fail(self.unreachable("it closes the connection"))
            } else {
                self.tryLater()
            }
        case .idle, .connecting, .closed: break
        }
    }

    private func fail(_ failure: DaemonLinkFailure) {
        guard self.end() else { return }
        let (opened, handler, pending) = (self.opened, self.handler, self.pending)
        (self.opened, self.handler, self.pending) = (nil, nil, [])
        for request in pending { request.answer(.failure(failure)) }
        if let opened { opened(failure) } else { handler?(.lost(failure)) }
    }

    func close() {
        guard self.end() else { return }
        for request in self.pending { request.answer(.failure(.closed)) }
        (self.opened, self.handler, self.pending) = (nil, nil, [])
    }

    /// - Returns: `false` if it has ended before.
    private func end() -> Bool {
        let state = self.state
        self.state = .closed
        self.loop.disarm(self.timer)
        switch state {
        case .closed: return false
        case .attaching(let connection, _), .attached(let connection): connection.close(linger: .seconds(1))
        case .idle, .connecting: break
        }
        return true
    }
}

extension LinkMachine: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        switch self.state {
        case .connecting: self.connect()
        case .attaching: self.fail(self.unreachable("it did not answer in time"))
        case .idle, .attached, .closed: break
        }
    }
}

extension LinkMachine: TransportConsumer {
    var unconsumedBytes: Int { 0 }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.reader.bytesReceived(bytes.bytes)
        do throws(FramingFailure) {
            while let message = try self.reader.nextMessage() { self.received(message) }
        } catch {
            self.fail(.refused(.malformed))
        }
        return bytes.byteCount
    }

    func inputClosed() {
        switch self.state {
        case .attaching(let connection, _), .attached(let connection): connection.close(linger: .zero)
        case .idle, .connecting, .closed: break
        }
    }

    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) { self.lost() }
}
