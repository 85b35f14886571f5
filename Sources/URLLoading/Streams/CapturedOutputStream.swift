import ByteKernels
import Foundation

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

    override func write(_ buffer: ForeignBytes.Source, maxLength len: Int) -> Int {
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
