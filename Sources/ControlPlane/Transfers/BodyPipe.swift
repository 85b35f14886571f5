import ByteKernels
import Foundation
import NIOCore

/// Passes the body of a request to a transfer. The writer suspends while the pipe is full; the reader blocks its own
/// thread while it is empty.
final class BodyPipe: @unchecked Sendable {  // The condition's lock protects the state.
    /// Capacity in bytes.
    private static let limit = 256 << 10

    private let condition = NSCondition()
    private var bytes: [UInt8] = []
    private var isFinished = false
    /// The writer failed before the end of the body.
    private var isBroken = false
    /// The reader has stopped.
    private var isClosed = false
    private var waiting: CheckedContinuation<Void, Never>?

    // MARK: Writing

    /// Waits until the pipe is no longer full.
    /// - Returns: `false` if the reader has stopped.
    func write(_ buffer: ByteBuffer) async -> Bool {
        self.append(buffer)
        await withCheckedContinuation { continuation in
            if !self.wait(continuation) { continuation.resume() }
        }
        return self.isOpen
    }

    private func append(_ buffer: ByteBuffer) {
        self.condition.withLock {
            if !self.isClosed { self.bytes.append(contentsOf: buffer.readableBytesView) }
            self.condition.broadcast()
        }
    }

    private func wait(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        self.condition.withLock {
            guard !self.isClosed, !self.isBroken, self.bytes.count >= Self.limit else { return false }
            self.waiting = continuation
            return true
        }
    }

    private var isOpen: Bool { self.condition.withLock { !self.isClosed && !self.isBroken } }

    func finish() {
        self.condition.withLock {
            self.isFinished = true
            self.condition.broadcast()
        }
    }

    /// Makes the reader fail.
    func fail() {
        let waiting = self.condition.withLock { () -> CheckedContinuation<Void, Never>? in
            if !self.isFinished { self.isBroken = true }
            self.condition.broadcast()
            return self.waiting.take()
        }
        waiting?.resume()
    }

    // MARK: Reading

    /// Blocks until there are bytes.
    /// - Returns: the number of bytes read; 0 at the end, -1 after a failure.
    func read(into target: PointerBytes.Target, count capacity: Int) -> Int {
        let (count, waiting) = self.condition.withLock { () -> (Int, CheckedContinuation<Void, Never>?) in
            while self.bytes.isEmpty, !self.isFinished, !self.isBroken, !self.isClosed { self.condition.wait() }
            guard !self.isBroken, !self.isClosed else { return (-1, self.waiting.take()) }
            let count = max(0, min(capacity, self.bytes.count))
            self.bytes.withRawSpan { $0.extracting(0..<count).copy(to: target) }
            self.bytes.removeFirst(count)
            return (count, self.bytes.count < Self.limit ? self.waiting.take() : nil)
        }
        waiting?.resume()
        return count
    }

    func close() {
        let waiting = self.condition.withLock { () -> CheckedContinuation<Void, Never>? in
            self.isClosed = true
            self.bytes = []
            self.condition.broadcast()
            return self.waiting.take()
        }
        waiting?.resume()
    }

    var hasFailed: Bool { self.condition.withLock { self.isBroken } }
}

/// The reading end of a `BodyPipe` as an input stream.
final class PipeInputStream: InputStream {
    private let pipe: BodyPipe
    private var status = Stream.Status.notOpen

    init(_ pipe: BodyPipe) {
        self.pipe = pipe
        super.init(data: Data())
    }

    override func open() { self.status = .open }

    override func close() {
        self.status = .closed
        self.pipe.close()
    }

    override var streamStatus: Stream.Status { self.pipe.hasFailed ? .error : self.status }

    override var streamError: (any Error)? { self.pipe.hasFailed ? CocoaError(.fileReadUnknown) : nil }

    override var hasBytesAvailable: Bool { self.status == .open }

    override func read(_ buffer: PointerBytes.Target, maxLength length: Int) -> Int {
        self.pipe.read(into: buffer, count: length)
    }
}
