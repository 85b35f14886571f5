import ByteKernels
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

    override func read(_ buffer: ForeignBytes.Target, maxLength len: Int) -> Int {
        guard self.lock.withLock({ self.phase == .open }) else { return -1 }
        let count = self.connection.read(into: buffer, count: len)
        self.lock.withLock { self.toldBytes = false }
        self.changed()
        return count
    }

    /// There is no buffer to be looked into.
    override func getBuffer(_ buffer: ForeignBytes.TargetSlot, length len: ForeignBytes.CountSlot) -> Bool { false }

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
