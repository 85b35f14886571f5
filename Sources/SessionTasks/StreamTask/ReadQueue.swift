import ByteKernels
import StreamTransport

/// The reads of a stream task.
///
/// Bytes that were buffered for a read but not returned yet belong to the queue: if the read is cancelled, the next one
/// gets them.
package struct ReadQueue: StreamQueue {
    package typealias Operation = QueuedOperation<Read>
    package typealias Completion = (Result<StreamTask.Chunk, TaskFailure>) -> Void

    package struct Read: QueuedTransfer {
        package let number: UInt64
        package let minimum: Int
        package let maximum: Int
        package var deadline: MonotonicInstant?
        package let completion: Completion

        /// What came for it stays for the next read.
        package var isWithdrawable: Bool { true }

        package init(
            number: UInt64, minimum: Int, maximum: Int, deadline: MonotonicInstant?, completion: @escaping Completion
        ) {
            self.number = number
            self.minimum = minimum
            self.maximum = maximum
            self.deadline = deadline
            self.completion = completion
        }
    }

    package enum Action {
        case answer(Completion, Result<StreamTask.Chunk, TaskFailure>)
        case closeInput
        case barrier(BarrierAction)
    }

    package var core = StreamQueueCore<Read>()
    /// Taken from the transport, not returned by a read yet.
    private var buffered: [UInt8] = []
    private var inputEnded = false
    /// After a failure of the connection: reads still get the bytes above, and the end.
    private var outlastsFailure = false

    package init() {}

    /// Whether the first operation is a read that more bytes would help: otherwise the transport should not read.
    package var wantsBytes: Bool {
        guard self.core.firstTransfer != nil else { return false }
        return !self.inputEnded && self.core.failure == nil
    }

    /// Takes what the first read can still use.
    /// - Returns: how many bytes of `bytes` were taken.
    package mutating func take(_ bytes: RawSpan) -> Int {
        guard let read = self.core.firstTransfer, self.core.failure == nil else { return 0 }
        let count = min(bytes.byteCount, max(0, read.maximum - self.buffered.count))
        self.buffered.append(bytes.extracting(0..<count))
        return count
    }

    /// Whether bytes are buffered without a read: while fewer than `limit` are.
    func readsAhead(_ limit: Int) -> Bool {
        self.buffered.count < limit && !self.inputEnded && self.core.failure == nil
    }

    /// Buffers bytes without a read, up to `limit` in all.
    /// - Returns: number of bytes taken from `bytes`.
    mutating func bufferAhead(_ bytes: RawSpan, limit: Int) -> Int {
        guard self.readsAhead(limit) else { return 0 }
        let count = min(bytes.byteCount, limit - self.buffered.count)
        self.buffered.append(bytes.extracting(0..<count))
        return count
    }

    package mutating func inputClosed() {
        self.inputEnded = true
    }

    /// The connection failed: reads get what came before, and then this failure. Bytes that do not suffice for a read
    /// are dropped with it.
    package mutating func connectionFailed(_ failure: TaskFailure) {
        guard self.core.failure == nil else { return }
        self.outlastsFailure = true
        self.fail(failure)
    }

    /// Next action to perform; call until `nil`.
    package mutating func nextAction() -> Action? {
        if let action = self.nextExpiredAction() { return action }
        switch self.core.operations.first {
        case nil:
            return nil
        case .transfer(let read):
            guard let answer = self.answer(to: read) else { return nil }
            self.core.removeFirst()
            return .answer(read.completion, answer)
        case .close:
            self.core.removeFirst()
            self.fail(.directionClosed)
            self.buffered = []
            return .closeInput
        case .barrier(let number):
            return self.core.barrierAction(number).map { .barrier($0) }
        }
    }

    /// The next action for an operation that a passed deadline failed; it needs no transport.
    mutating func nextExpiredAction() -> Action? {
        guard let (operation, failure) = self.core.popExpired() else { return nil }
        return switch operation {
        case .transfer(let read): .answer(read.completion, .failure(failure))
        case .close: .closeInput
        case .barrier(let number): .barrier(.failed(number, failure))
        }
    }

    private mutating func answer(to read: Read) -> Result<StreamTask.Chunk, TaskFailure>? {
        if let failure = self.core.failure, !self.outlastsFailure || !self.suffices(for: read) {
            self.dropRest()
            return .failure(failure)
        }
        guard self.suffices(for: read) else { return nil }
        let bytes: [UInt8]
        if self.buffered.count <= read.maximum {
            bytes = self.takeBuffered()
        } else {
            bytes = Array(self.buffered.prefix(read.maximum))
            self.buffered.removeFirst(read.maximum)
        }
        let isAtEnd = self.inputEnded && self.buffered.isEmpty
        if isAtEnd, self.outlastsFailure { self.dropRest() }
        return .success(StreamTask.Chunk(bytes: bytes, isAtEnd: isAtEnd))
    }

    private func suffices(for read: Read) -> Bool {
        self.buffered.count >= read.minimum || self.inputEnded
    }

    /// From now on the failure is all that reads get.
    private mutating func dropRest() {
        self.outlastsFailure = false
        self.inputEnded = false
        self.buffered = []
    }

    /// Takes the buffered bytes; they precede those still in the transport.
    mutating func takeBuffered() -> [UInt8] {
        defer { self.buffered = [] }
        return self.buffered
    }
}
