import ByteKernels
import Foundation
import NIOCore

/// A body that one request brings and another connection takes. Whoever brings it waits while `limit` bytes lie there;
/// whoever takes it has a thread of its own to wait on.
final class BodyPipe: @unchecked Sendable {
    /// In bytes.
    static let limit = 256 << 10

    private let condition = NSCondition()
    private var bytes: [UInt8] = []
    private var isFinished = false
    /// What was brought is not the whole.
    private var isBroken = false
    /// Nobody takes anything any more.
    private var isClosed = false
    private var waiting: CheckedContinuation<Void, Never>?

    // MARK: Bringing

    /// Returns when there is room for more.
    /// - Returns: whether there is anybody who takes it.
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

    /// Whoever takes it hears of a failure.
    func fail() {
        let waiting = self.condition.withLock { () -> CheckedContinuation<Void, Never>? in
            if !self.isFinished { self.isBroken = true }
            self.condition.broadcast()
            return self.waiting.take()
        }
        waiting?.resume()
    }

    // MARK: Taking

    /// Waits for bytes.
    /// - Returns: how many were given; 0 at the end, -1 after a failure.
    func read(into room: PointerBytes.Target, count roomSize: Int) -> Int {
        let (count, waiting) = self.condition.withLock { () -> (Int, CheckedContinuation<Void, Never>?) in
            while self.bytes.isEmpty, !self.isFinished, !self.isBroken, !self.isClosed { self.condition.wait() }
            guard !self.isBroken, !self.isClosed else { return (-1, self.waiting.take()) }
            let count = max(0, min(roomSize, self.bytes.count))
            self.bytes.withRawSpan { $0.extracting(0..<count).copy(to: room) }
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

/// The taking end of a pipe, as the loader wants it.
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
