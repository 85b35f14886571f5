import ByteKernels
internal import CRunLoop
import Foundation

/// What a peer sends on a connection that was taken out of its task: read by waiting for it, or told of by events on a
/// run loop. A stream that goes away is closed.
final class CapturedInputStream: InputStream {
    private enum Phase {
        case notOpen
        case open
        case closed
    }

    private let connection: CapturedConnection
    private let lock = NSLock()
    private var phase = Phase.notOpen
    /// An event told of bytes, and none were asked for since.
    private var toldBytes = false
    private var toldEnd = false
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
        let begins = self.lock.withLock {
            guard self.phase == .notOpen else { return false }
            self.phase = .open
            return true
        }
        guard begins else { return }
        self.connection.observe(input: { [weak self] in self?.changed() })
        self.connection.openInput()
        self.events.raise(.openCompleted)
        self.changed()
    }

    override func close() {
        self.lock.withLock { self.phase = .closed }
        self.connection.closeInput()
    }

    override func read(_ buffer: PointerBytes.Target, maxLength len: Int) -> Int {
        guard self.lock.withLock({ self.phase == .open }) else { return -1 }
        let count = self.connection.read(into: buffer, count: len)
        self.lock.withLock { self.toldBytes = false }
        self.changed()
        return count
    }

    /// There is no buffer to be looked into.
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

    private func changed() {
        let hasBytes = self.connection.hasBytes
        let isExhausted = self.connection.isInputExhausted
        let event = self.lock.withLock { () -> Event in
            guard self.phase == .open else { return [] }
            if hasBytes, !self.toldBytes {
                self.toldBytes = true
                return .hasBytesAvailable
            }
            guard isExhausted, !self.toldEnd else { return [] }
            self.toldEnd = true
            return self.connection.inputFailure == nil ? .endEncountered : .errorOccurred
        }
        if !event.isEmpty { self.events.raise(event) }
    }

    private func deliver(_ event: Event) {
        guard self.lock.withLock({ self.phase == .open }) else { return }
        // Somebody may have read them by now.
        if event == .hasBytesAvailable, !self.connection.hasBytes {
            self.lock.withLock { self.toldBytes = false }
            // Others may have come since.
            return self.changed()
        }
        self.delegate?.stream(self, handle: event)
    }
}

/// What is sent to the peer of a connection that was taken out of its task: written by waiting for room, or when events on
/// a run loop tell of some. A stream that goes away is closed.
final class CapturedOutputStream: OutputStream {
    private enum Phase {
        case notOpen
        case open
        case closed
    }

    /// `nil` for a stream that was made without a connection, which is closed.
    private let connection: CapturedConnection?
    private let lock = NSLock()
    private var phase: Phase
    /// An event told of room, and nothing was written since.
    private var toldSpace = false
    private var toldEnd = false
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
        let begins = self.lock.withLock {
            guard self.phase == .notOpen else { return false }
            self.phase = .open
            return true
        }
        guard begins else { return }
        self.connection?.observe(output: { [weak self] in self?.changed() })
        self.events.raise(.openCompleted)
        self.changed()
    }

    override func close() {
        self.lock.withLock { self.phase = .closed }
        self.connection?.closeOutput()
    }

    override func write(_ buffer: PointerBytes.Source, maxLength len: Int) -> Int {
        guard let connection = self.connection, self.lock.withLock({ self.phase == .open }) else { return -1 }
        let count = connection.write(buffer, count: len)
        self.lock.withLock { self.toldSpace = false }
        self.changed()
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

    private func changed() {
        guard let connection = self.connection else { return }
        let (hasSpace, isEnded) = (connection.hasSpace, connection.isEnded)
        let event = self.lock.withLock { () -> Event in
            guard self.phase == .open else { return [] }
            if hasSpace, !self.toldSpace {
                self.toldSpace = true
                return .hasSpaceAvailable
            }
            guard isEnded, !self.toldEnd else { return [] }
            self.toldEnd = true
            return connection.failure == nil ? .endEncountered : .errorOccurred
        }
        if !event.isEmpty { self.events.raise(event) }
    }

    private func deliver(_ event: Event) {
        guard self.lock.withLock({ self.phase == .open }) else { return }
        // Somebody may have filled it by now.
        if event == .hasSpaceAvailable, self.connection?.hasSpace != true {
            self.lock.withLock { self.toldSpace = false }
            // Room may have come since.
            return self.changed()
        }
        self.delegate?.stream(self, handle: event)
    }
}

/// Brings the events of a stream to its delegate, on the run loops in which the stream is scheduled.
///
/// A timer that never falls due stands for the stream in each of them, so that it is not left for having nothing to wait
/// for; who has an event makes it fall due.
final class StreamEvents: @unchecked Sendable {
    private struct Place {
        let runLoop: RunLoop
        let mode: RunLoop.Mode
        let timer: Timer
    }

    private let lock = NSLock()
    private var places: [Place] = []
    private var pending: Stream.Event = []
    /// Called with one event at a time, on a run loop.
    private let deliver: (Stream.Event) -> Void

    init(_ deliver: @escaping (Stream.Event) -> Void) {
        self.deliver = deliver
    }

    deinit {
        for place in self.places { place.timer.invalidate() }
    }

    func schedule(in runLoop: RunLoop, mode: RunLoop.Mode) {
        let timer = Timer(fire: .distantFuture, interval: .greatestFiniteMagnitude, repeats: true) { [weak self] _ in
            self?.fire()
        }
        let isDue = self.lock.withLock {
            self.places.append(Place(runLoop: runLoop, mode: mode, timer: timer))
            return !self.pending.isEmpty
        }
        runLoop.add(timer, forMode: mode)
        if isDue { timer.fireDate = Date() }
    }

    func remove(from runLoop: RunLoop, mode: RunLoop.Mode) {
        let removed = self.lock.withLock { () -> [Place] in
            let isMeant = { (place: Place) in place.runLoop === runLoop && place.mode == mode }
            defer { self.places.removeAll(where: isMeant) }
            return self.places.filter(isMeant)
        }
        for place in removed { place.timer.invalidate() }
    }

    /// From any thread. Events wait until the stream is scheduled.
    func raise(_ events: Stream.Event) {
        let timers = self.lock.withLock { () -> [Timer] in
            self.pending.formUnion(events)
            return self.places.map(\.timer)
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
        // As behind any event of a source: who runs the loop until something has happened goes on.
        sluice_run_loop_return()
    }
}
