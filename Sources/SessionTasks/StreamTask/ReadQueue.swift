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
        if let failure = self.core.failure { return .failure(failure) }
        guard self.buffered.count >= read.minimum || self.inputEnded else { return nil }
        let bytes: [UInt8]
        if self.buffered.count <= read.maximum {
            bytes = self.takeBuffered()
        } else {
            bytes = Array(self.buffered.prefix(read.maximum))
            self.buffered.removeFirst(read.maximum)
        }
        return .success(StreamTask.Chunk(bytes: bytes, isAtEnd: self.inputEnded && self.buffered.isEmpty))
    }

    /// Takes the buffered bytes; they precede those still in the transport.
    mutating func takeBuffered() -> [UInt8] {
        defer { self.buffered = [] }
        return self.buffered
    }
}
