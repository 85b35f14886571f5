import ByteKernels
internal import CRunLoop
import Foundation
import StreamTransport

/// The input of a captured connection. Reads block; a delegate gets events on its run loop. Closed on deinit.
final class CapturedInputStream: InputStream {
    private let connection: CapturedConnection
    private let state: CapturedStreamState

    init(_ connection: CapturedConnection) {
        self.connection = connection
        self.state = CapturedStreamState(
            readyEvent: .hasBytesAvailable, isReady: { connection.hasBytes },
            isEnded: { connection.isInputExhausted }, failure: { connection.inputFailure })
        super.init(data: Data())
        self.state.setDelivery { [weak self] event in
            if let self { self.delegate?.stream(self, handle: event) }
        }
    }

    deinit {
        self.connection.closeInput()
    }

    override func open() {
        self.state.open { [connection, state] in
            connection.observe(input: { [weak state] in state?.reportChanges() })
            connection.openInput()
        }
    }

    override func close() {
        self.state.close()
        self.connection.closeInput()
    }

    override func read(_ buffer: PointerBytes.Target, maxLength len: Int) -> Int {
        guard self.state.isOpen else { return -1 }
        defer { self.state.bytesMoved() }
        return self.connection.read(into: buffer, count: len)
    }

    /// Not supported.
    override func getBuffer(_ buffer: PointerBytes.TargetSlot, length len: PointerBytes.CountSlot) -> Bool { false }

    override var hasBytesAvailable: Bool { self.state.isOpen && self.connection.hasBytes }
    override var streamStatus: Status { self.state.status }
    override var streamError: (any Error)? { self.state.error }
    override func property(forKey key: PropertyKey) -> AnyObject? { nil }
    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.state.schedule(in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.state.remove(from: aRunLoop, mode: mode)
    }
}

/// The output of a captured connection. Writes block; a delegate gets events on its run loop. Closed on deinit.
final class CapturedOutputStream: OutputStream {
    /// `nil` for a stream created by `init(toMemory:)`, which is closed.
    private let connection: CapturedConnection?
    private let state: CapturedStreamState

    init(_ connection: CapturedConnection) {
        self.connection = connection
        self.state = CapturedStreamState(
            readyEvent: .hasSpaceAvailable, isReady: { connection.hasSpace }, isEnded: { connection.isEnded },
            failure: { connection.failure })
        super.init(toMemory: ())
        self.state.setDelivery { [weak self] event in
            if let self { self.delegate?.stream(self, handle: event) }
        }
    }

    required init(toMemory: ()) {
        self.connection = nil
        self.state = CapturedStreamState(
            readyEvent: .hasSpaceAvailable, isReady: { false }, isEnded: { true }, failure: { nil })
        self.state.close()
        super.init(toMemory: ())
    }

    deinit {
        self.connection?.closeOutput()
    }

    override func open() {
        self.state.open { [connection, state] in
            connection?.observe(output: { [weak state] in state?.reportChanges() })
        }
    }

    override func close() {
        self.state.close()
        self.connection?.closeOutput()
    }

    override func write(_ buffer: PointerBytes.Source, maxLength len: Int) -> Int {
        guard let connection = self.connection, self.state.isOpen else { return -1 }
        defer { self.state.bytesMoved() }
        return connection.write(buffer, count: len)
    }

    override var hasSpaceAvailable: Bool { self.state.isOpen && self.connection?.hasSpace == true }
    override var streamStatus: Status { self.state.status }
    override var streamError: (any Error)? { self.state.error }
    override func property(forKey key: PropertyKey) -> AnyObject? { nil }
    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.state.schedule(in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.state.remove(from: aRunLoop, mode: mode)
    }
}

/// What both streams of a captured connection share: whether they are open, and the events for their delegate, delivered
/// on the run loops in which the stream is scheduled.
///
/// In each run loop a timer in the distant future represents the stream, so that the run loop does not exit for lack of
/// sources. Posting an event makes the timer fire.
private final class CapturedStreamState: @unchecked Sendable {  // Its vars are guarded by `lock`.
    private enum Phase {
        case notOpen
        case open
        case closed
    }

    private struct Registration {
        let runLoop: RunLoop
        let mode: RunLoop.Mode
        let timer: Timer
    }

    private let readyEvent: Stream.Event
    private let isReady: () -> Bool
    private let isEnded: () -> Bool
    private let failure: () -> TransportFailure?
    private let lock = NSLock()
    private var phase = Phase.notOpen
    /// `readyEvent` was posted, and nothing was read or written since.
    private var didReportReady = false
    private var didReportEnd = false
    private var registrations: [Registration] = []
    private var pending: Stream.Event = []
    private var deliver: (Stream.Event) -> Void = { _ in }

    /// - Parameters:
    ///   - readyEvent: the event for bytes or space.
    ///   - isReady: whether there are any.
    ///   - isEnded: whether there will be no more.
    ///   - failure: why; `nil` after a clean end.
    init(
        readyEvent: Stream.Event, isReady: @escaping () -> Bool, isEnded: @escaping () -> Bool,
        failure: @escaping () -> TransportFailure?
    ) {
        self.readyEvent = readyEvent
        self.isReady = isReady
        self.isEnded = isEnded
        self.failure = failure
    }

    deinit {
        for registration in self.registrations { registration.timer.invalidate() }
    }

    /// - Parameter deliver: called with one event at a time, on a run loop.
    func setDelivery(_ deliver: @escaping (Stream.Event) -> Void) {
        self.lock.withLock { self.deliver = deliver }
    }

    // MARK: Opening and closing

    var isOpen: Bool { self.lock.withLock { self.phase == .open } }

    /// - Parameter connect: called the first time.
    func open(_ connect: () -> Void) {
        let isFirst = self.lock.withLock {
            guard self.phase == .notOpen else { return false }
            self.phase = .open
            return true
        }
        guard isFirst else { return }
        connect()
        self.post(.openCompleted)
        self.reportChanges()
    }

    func close() { self.lock.withLock { self.phase = .closed } }

    var status: Stream.Status {
        switch self.lock.withLock({ self.phase }) {
        case .notOpen: .notOpen
        case .closed: .closed
        case .open where !self.isEnded(): .open
        case .open: self.failure() == nil ? .atEnd : .error
        }
    }

    var error: (any Error)? { self.status == .error ? self.failure().map(StreamFailure.error) : nil }

    // MARK: Events

    /// Something was read or written: the delegate is notified again.
    func bytesMoved() {
        self.lock.withLock { self.didReportReady = false }
        self.reportChanges()
    }

    func reportChanges() {
        let (isReady, isEnded) = (self.isReady(), self.isEnded())
        let event = self.lock.withLock { () -> Stream.Event in
            guard self.phase == .open else { return [] }
            if isReady, !self.didReportReady {
                self.didReportReady = true
                return self.readyEvent
            }
            guard isEnded, !self.didReportEnd else { return [] }
            self.didReportEnd = true
            return self.failure() == nil ? .endEncountered : .errorOccurred
        }
        if !event.isEmpty { self.post(event) }
    }

    private func eventDue(_ event: Stream.Event) {
        let (isOpen, deliver) = self.lock.withLock { (self.phase == .open, self.deliver) }
        guard isOpen else { return }
        // The bytes or the space may have been used since the event was posted; more may have come meanwhile.
        if event == self.readyEvent, !self.isReady() { return self.bytesMoved() }
        deliver(event)
    }

    func schedule(in runLoop: RunLoop, mode: RunLoop.Mode) {
        let timer = Timer(fire: .distantFuture, interval: .greatestFiniteMagnitude, repeats: true) { [weak self] _ in
            self?.fire()
        }
        let isDue = self.lock.withLock {
            self.registrations.append(Registration(runLoop: runLoop, mode: mode, timer: timer))
            return !self.pending.isEmpty
        }
        runLoop.add(timer, forMode: mode)
        if isDue { timer.fireDate = Date() }
    }

    func remove(from runLoop: RunLoop, mode: RunLoop.Mode) {
        let removed = self.lock.withLock { () -> [Registration] in
            let isMeant = { (registration: Registration) in
                registration.runLoop === runLoop && registration.mode == mode
            }
            defer { self.registrations.removeAll(where: isMeant) }
            return self.registrations.filter(isMeant)
        }
        for registration in removed { registration.timer.invalidate() }
    }

    /// Events wait until the stream is scheduled.
    private func post(_ events: Stream.Event) {
        let timers = self.lock.withLock { () -> [Timer] in
            self.pending.formUnion(events)
            return self.registrations.map(\.timer)
        }
        let now = Date()
        for timer in timers { timer.fireDate = now }
    }

    private func fire() {
        while true {
            let events = self.lock.withLock {
                defer { self.pending = [] }
                return self.pending
            }
            guard !events.isEmpty else { break }
            let order: [Stream.Event] = [
                .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
            ]
            for event in order where events.contains(event) { self.eventDue(event) }
        }
        // Like an event of any source, this ends `RunLoop.run(mode:before:)`.
        sluice_run_loop_return()
    }
}
