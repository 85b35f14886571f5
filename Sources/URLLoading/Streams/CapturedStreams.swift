import ByteKernels
internal import CRunLoop
import Foundation

/// The input of a captured connection. Reads block; a delegate gets events on its run loop. Closed on deinit.
final class CapturedInputStream: InputStream {
    private let connection: CapturedConnection
    private let lock = NSLock()
    private var phase = StreamPhase.notOpen
    /// `hasBytesAvailable` was posted, and nothing was read since.
    private var didReportBytes = false
    private var didReportEnd = false
    private var events = StreamEvents { _ in }

    init(_ connection: CapturedConnection) {
        self.connection = connection
        super.init(data: Data())
        self.events = StreamEvents { [weak self] event in self?.deliver(event) }
    }

    deinit {
        self.connection.closeInput()
    }

    override func open() {
        let isFirstOpen = self.lock.withLock {
            guard self.phase == .notOpen else { return false }
            self.phase = .open
            return true
        }
        guard isFirstOpen else { return }
        self.connection.observe(input: { [weak self] in self?.reportChanges() })
        self.connection.openInput()
        self.events.post(.openCompleted)
        self.reportChanges()
    }

    override func close() {
        self.lock.withLock { self.phase = .closed }
        self.connection.closeInput()
    }

    override func read(_ buffer: PointerBytes.Target, maxLength len: Int) -> Int {
        guard self.lock.withLock({ self.phase == .open }) else { return -1 }
        let count = self.connection.read(into: buffer, count: len)
        self.lock.withLock { self.didReportBytes = false }
        self.reportChanges()
        return count
    }

    /// Not supported.
    override func getBuffer(_ buffer: PointerBytes.TargetSlot, length len: PointerBytes.CountSlot) -> Bool { false }

    override var hasBytesAvailable: Bool { self.lock.withLock { self.phase == .open } && self.connection.hasBytes }

    override var streamStatus: Status {
        switch self.lock.withLock({ self.phase }) {
        case .notOpen: .notOpen
        case .closed: .closed
        case .open where !self.connection.isInputExhausted: .open
        case .open: self.connection.inputFailure == nil ? .atEnd : .error
        }
    }

    override var streamError: (any Error)? {
        guard self.streamStatus == .error else { return nil }
        return self.connection.inputFailure.map(StreamFailure.error)
    }

    override func property(forKey key: PropertyKey) -> AnyObject? { nil }
    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.events.schedule(in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.events.remove(from: aRunLoop, mode: mode)
    }

    private func reportChanges() {
        let hasBytes = self.connection.hasBytes
        let isExhausted = self.connection.isInputExhausted
        let event = self.lock.withLock { () -> Event in
            guard self.phase == .open else { return [] }
            if hasBytes, !self.didReportBytes {
                self.didReportBytes = true
                return .hasBytesAvailable
            }
            guard isExhausted, !self.didReportEnd else { return [] }
            self.didReportEnd = true
            return self.connection.inputFailure == nil ? .endEncountered : .errorOccurred
        }
        if !event.isEmpty { self.events.post(event) }
    }

    private func deliver(_ event: Event) {
        guard self.lock.withLock({ self.phase == .open }) else { return }
        // The bytes may have been read since the event was posted.
        if event == .hasBytesAvailable, !self.connection.hasBytes {
            self.lock.withLock { self.didReportBytes = false }
            // More may have arrived meanwhile.
            return self.reportChanges()
        }
        self.delegate?.stream(self, handle: event)
    }
}

/// The output of a captured connection. Writes block; a delegate gets events on its run loop. Closed on deinit.
final class CapturedOutputStream: OutputStream {
    /// `nil` for a stream created by `init(toMemory:)`, which is closed.
    private let connection: CapturedConnection?
    private let lock = NSLock()
    private var phase: StreamPhase
    /// `hasSpaceAvailable` was posted, and nothing was written since.
    private var didReportSpace = false
    private var didReportEnd = false
    private var events = StreamEvents { _ in }

    init(_ connection: CapturedConnection) {
        self.connection = connection
        self.phase = .notOpen
        super.init(toMemory: ())
        self.events = StreamEvents { [weak self] event in self?.deliver(event) }
    }

    required init(toMemory: ()) {
        self.connection = nil
        self.phase = .closed
        super.init(toMemory: ())
    }

    deinit {
        self.connection?.closeOutput()
    }

    override func open() {
        let isFirstOpen = self.lock.withLock {
            guard self.phase == .notOpen else { return false }
            self.phase = .open
            return true
        }
        guard isFirstOpen else { return }
        self.connection?.observe(output: { [weak self] in self?.reportChanges() })
        self.events.post(.openCompleted)
        self.reportChanges()
    }

    override func close() {
        self.lock.withLock { self.phase = .closed }
        self.connection?.closeOutput()
    }

    override func write(_ buffer: PointerBytes.Source, maxLength len: Int) -> Int {
        guard let connection = self.connection, self.lock.withLock({ self.phase == .open }) else { return -1 }
        let count = connection.write(buffer, count: len)
        self.lock.withLock { self.didReportSpace = false }
        self.reportChanges()
        return count
    }

    override var hasSpaceAvailable: Bool {
        self.lock.withLock { self.phase == .open } && self.connection?.hasSpace == true
    }

    override var streamStatus: Status {
        switch self.lock.withLock({ self.phase }) {
        case .notOpen: .notOpen
        case .closed: .closed
        case .open where self.connection?.isEnded == false: .open
        case .open: self.connection?.failure == nil ? .atEnd : .error
        }
    }

    override var streamError: (any Error)? {
        guard self.streamStatus == .error else { return nil }
        return self.connection?.failure.map(StreamFailure.error)
    }

    override func property(forKey key: PropertyKey) -> AnyObject? { nil }
    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.events.schedule(in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        self.events.remove(from: aRunLoop, mode: mode)
    }

    private func reportChanges() {
        guard let connection = self.connection else { return }
        let (hasSpace, isEnded) = (connection.hasSpace, connection.isEnded)
        let event = self.lock.withLock { () -> Event in
            guard self.phase == .open else { return [] }
            if hasSpace, !self.didReportSpace {
                self.didReportSpace = true
                return .hasSpaceAvailable
            }
            guard isEnded, !self.didReportEnd else { return [] }
            self.didReportEnd = true
            return connection.failure == nil ? .endEncountered : .errorOccurred
        }
        if !event.isEmpty { self.events.post(event) }
    }

    private func deliver(_ event: Event) {
        guard self.lock.withLock({ self.phase == .open }) else { return }
        // The space may have been used since the event was posted.
        if event == .hasSpaceAvailable, self.connection?.hasSpace != true {
            self.lock.withLock { self.didReportSpace = false }
            // More space may be available meanwhile.
            return self.reportChanges()
        }
        self.delegate?.stream(self, handle: event)
    }
}

private enum StreamPhase {
    case notOpen
    case open
    case closed
}

/// Delivers the events of a stream to its delegate, on the run loops in which the stream is scheduled.
///
/// In each run loop a timer in the distant future represents the stream, so that the run loop does not exit for lack of
/// sources. Posting an event makes the timer fire.
private final class StreamEvents: @unchecked Sendable {  // Its vars are guarded by `lock`.
    private struct Registration {
        let runLoop: RunLoop
        let mode: RunLoop.Mode
        let timer: Timer
    }

    private let lock = NSLock()
    private var registrations: [Registration] = []
    private var pending: Stream.Event = []
    /// Called with one event at a time, on a run loop.
    private let deliver: (Stream.Event) -> Void

    init(_ deliver: @escaping (Stream.Event) -> Void) {
        self.deliver = deliver
    }

    deinit {
        for registration in self.registrations { registration.timer.invalidate() }
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

    /// From any thread. Events wait until the stream is scheduled.
    func post(_ events: Stream.Event) {
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
            for event in order where events.contains(event) { self.deliver(event) }
        }
        // Like an event of any source, this ends `RunLoop.run(mode:before:)`.
        sluice_run_loop_return()
    }
}
