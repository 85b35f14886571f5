import ByteKernels
import DequeModule
import StreamTransport

/// The reads of a stream task in order, as a machine without transport and clock.
///
/// Bytes that were buffered for a read but not returned yet belong to the queue: if the read is cancelled, the next one
/// gets them.
package struct ReadQueue {
    package typealias Completion = (Result<StreamTask.Chunk, TaskFailure>) -> Void

    package struct Read {
        package let number: UInt64
        package let minimum: Int
        package let maximum: Int
        /// `nil`: waits without limit.
        package fileprivate(set) var deadline: MonotonicInstant?
        package let completion: Completion

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

    package enum Operation {
        case read(Read)
        /// The read side is to be closed when all reads before it are answered.
        case close
        /// Nothing passes until both queues have reached the barrier and it was lifted.
        case barrier(number: UInt64)
    }

    package enum Action {
        case answer(Completion, Result<StreamTask.Chunk, TaskFailure>)
        case closeInput
        case reachedBarrier(UInt64)
        /// The barrier's operation cannot happen any more: an operation before it failed.
        case failedBarrier(UInt64, TaskFailure)
    }

    package private(set) var operations: Deque<Operation> = []
    /// Taken from the transport, not yet given to anyone.
    package private(set) var buffered: [UInt8] = []
    private var inputEnded = false
    /// Once set, answers every read at once.
    private var failure: TaskFailure?
    /// Operations after one whose deadline passed: they fail at once, while operations before it keep waiting.
    private var expired = ExpiredOperations<Operation>()
    private var reportedBarrierNumber: UInt64 = 0

    package init() {}

    package var isEmpty: Bool {
        self.operations.isEmpty && self.expired.operations.isEmpty
    }

    /// Whether the first operation is a read that more bytes would help: otherwise the transport should not read.
    package var wantsBytes: Bool {
        guard case .read = self.operations.first else { return false }
        return !self.inputEnded && self.failure == nil
    }

    package var earliestDeadline: MonotonicInstant? {
        self.operations.compactMap { operation -> MonotonicInstant? in
            if case .read(let read) = operation { read.deadline } else { nil }
        }.min()
    }

    /// Moves every deadline by the time in which none could pass.
    package mutating func postpone(by duration: Duration) {
        for index in self.operations.indices {
            guard case .read(var read) = self.operations[index], let deadline = read.deadline else { continue }
            read.deadline = deadline.advanced(by: duration)
            self.operations[index] = .read(read)
        }
    }

    package mutating func append(_ operation: Operation) {
        if self.expired.isOpen { self.expired.operations.append(operation) } else { self.operations.append(operation) }
    }

    /// Takes what the first read can still use.
    /// - Returns: how many bytes of `bytes` were taken.
    package mutating func take(_ bytes: RawSpan) -> Int {
        guard case .read(let read) = self.operations.first, self.failure == nil else { return 0 }
        let count = min(bytes.byteCount, max(0, read.maximum - self.buffered.count))
        self.buffered.append(bytes.extracting(0..<count))
        return count
    }

    /// Whether bytes are buffered without a read: while fewer than `limit` are.
    package func readsAhead(_ limit: Int) -> Bool {
        self.buffered.count < limit && !self.inputEnded && self.failure == nil
    }

    /// Buffers bytes without a read, up to `limit` in all.
    /// - Returns: number of bytes taken from `bytes`.
    package mutating func bufferAhead(_ bytes: RawSpan, limit: Int) -> Int {
        guard self.readsAhead(limit) else { return 0 }
        let count = min(bytes.byteCount, limit - self.buffered.count)
        self.buffered.append(bytes.extracting(0..<count))
        return count
    }

    package mutating func inputClosed() {
        self.inputEnded = true
    }

    /// Fails the reads that wait, and all later ones.
    package mutating func fail(_ failure: TaskFailure) {
        if self.failure == nil { self.failure = failure }
    }

    /// Next action to perform; call until `nil`.
    package mutating func nextAction() -> Action? {
        if let order = self.nextExpiredAction() { return order }
        switch self.operations.first {
        case nil:
            return nil
        case .read(let read):
            guard let answer = self.answer(to: read) else { return nil }
            self.operations.removeFirst()
            return .answer(read.completion, answer)
        case .close:
            self.operations.removeFirst()
            self.fail(.directionClosed)
            self.buffered = []
            return .closeInput
        case .barrier(let number):
            if let failure = self.failure, failure != .directionClosed {
                self.operations.removeFirst()
                return .failedBarrier(number, failure)
            }
            guard self.reportedBarrierNumber != number else { return nil }
            self.reportedBarrierNumber = number
            return .reachedBarrier(number)
        }
    }

    /// The next order for what a passed deadline brought down, which needs no transport.
    package mutating func nextExpiredAction() -> Action? {
        guard let failure = self.expired.failure, let operation = self.expired.operations.popFirst() else { return nil }
        return switch operation {
        case .read(let read): .answer(read.completion, .failure(failure))
        case .close: .closeInput
        case .barrier(let number): .failedBarrier(number, failure)
        }
    }

    private mutating func answer(to read: Read) -> Result<StreamTask.Chunk, TaskFailure>? {
        if let failure = self.failure { return .failure(failure) }
        guard self.buffered.count >= read.minimum || self.inputEnded else { return nil }
        let bytes: [UInt8]
        if self.buffered.count <= read.maximum {
            bytes = self.buffered
            self.buffered = []
        } else {
            bytes = Array(self.buffered.prefix(read.maximum))
            self.buffered.removeFirst(read.maximum)
        }
        return .success(StreamTask.Chunk(bytes: bytes, isAtEnd: self.inputEnded && self.buffered.isEmpty))
    }

    package func isAtBarrier(_ number: UInt64) -> Bool {
        if case .barrier(number) = self.operations.first { true } else { false }
    }

    /// Removes the barrier and fails the operations after it and all later ones.
    package mutating func failAfterBarrier(_ number: UInt64, _ failure: TaskFailure) {
        let found = self.operations.firstIndex { if case .barrier(number) = $0 { true } else { false } }
        if let found { self.expired.take(&self.operations, from: found + 1, failure) }
        self.liftBarrier(number)
    }

    /// Removes the barrier, wherever it is in the queue, so that the operations after it run.
    package mutating func liftBarrier(_ number: UInt64) {
        self.operations.removeAll { if case .barrier(number) = $0 { true } else { false } }
    }

    /// Takes the buffered bytes; they precede those still in the transport.
    package mutating func takeBuffered() -> [UInt8] {
        defer { self.buffered = [] }
        return self.buffered
    }

    /// Takes one read out unanswered; its bytes stay for the next.
    package mutating func withdraw(_ number: UInt64) -> Completion? {
        let found = self.operations.firstIndex {
            if case .read(let read) = $0 { read.number == number } else { false }
        }
        guard let found, case .read(let read) = self.operations[found] else { return nil }
        self.operations.remove(at: found)
        return read.completion
    }

    /// Fails the first read whose deadline has passed, and everything after it; reads before it are not touched.
    package mutating func expire(at now: MonotonicInstant) {
        let late = self.operations.firstIndex {
            if case .read(let read) = $0, let deadline = read.deadline { deadline <= now } else { false }
        }
        guard let late else { return }
        self.expired.take(&self.operations, from: late, .timedOut)
    }
}
