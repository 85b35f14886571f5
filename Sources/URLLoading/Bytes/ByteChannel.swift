import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// A bounded queue of bytes from a loader to an asynchronous reader. Usable from any thread.
package final class ByteChannel: Sendable {
    typealias Waiter = CheckedContinuation<[UInt8]?, any Error>

    enum TakeResult {
        case run([UInt8])
        case ended((any Error)?)
        case later
    }

    private struct State {
        var runs: [[UInt8]] = []
        var count = 0
        /// `offer` answered `false`.
        var isFull = false
        /// Set by the loader, or by `abandon`.
        var end: End?
        var waiter: Waiter?
    }

    private struct End {
        let error: (any Error)?
    }

    /// Smaller pieces are joined into runs of this size.
    private static let runSize = 64 << 10

    /// High watermark in bytes; the low watermark is half of it.
    package let limit: Int
    private let state = Mutex(State())
    private let onWanted: @Sendable () -> Void
    private let onAbandoned: @Sendable () -> Void

    /// - Parameters:
    ///   - wanted: called on the reader's thread when `offer` has returned `false` and the low watermark is reached.
    ///   - abandoned: called if the reader is released or cancelled before the end.
    package init(
        limit: Int = 1 << 20, wanted: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void
    ) {
        self.limit = limit
        self.onWanted = wanted
        self.onAbandoned = abandoned
    }

    // MARK: From the loader

    /// Adds a copy of `bytes`, even above the limit.
    /// - Returns: whether to offer more.
    @discardableResult
    package func offer(_ bytes: RawSpan) -> Bool {
        let (waiter, run, takesMore) = self.state.withLock { state -> (Waiter?, [UInt8], Bool) in
            guard state.end == nil, bytes.byteCount > 0 else { return (nil, [], !state.isFull) }
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, [UInt8](bytes), true)
            }
            if let last = state.runs.indices.last, state.runs[last].count + bytes.byteCount <= Self.runSize {
                state.runs[last].append(bytes)
            } else {
                state.runs.append([UInt8](bytes))
            }
            state.count += bytes.byteCount
            state.isFull = state.count >= self.limit
            return (nil, [], !state.isFull)
        }
        waiter?.resume(returning: run)
        return takesMore
    }

    @discardableResult
    package func offer(_ data: Data) -> Bool { self.offer(data.bytes) }

    /// Ends the channel after the last byte; the first call counts.
    package func finish(_ error: (any Error)?) {
        let waiter = self.state.withLock { state -> Waiter? in
            guard state.end == nil else { return nil }
            state.end = End(error: error)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(with: error.map { .failure($0) } ?? .success(nil))
    }

    // MARK: From the reader

    func take() -> TakeResult {
        let (taking, wantsMore) = self.state.withLock { state -> (TakeResult, Bool) in
            guard !state.runs.isEmpty else { return (state.end.map { .ended($0.error) } ?? .later, false) }
            let run = state.runs.removeFirst()
            state.count -= run.count
            let wantsMore = state.isFull && state.count <= self.limit / 2 && state.end == nil
            if wantsMore { state.isFull = false }
            return (.run(run), wantsMore)
        }
        if wantsMore { self.onWanted() }
        return taking
    }

    /// Resumes `waiter` with the next bytes or the end. Only one waiter at a time.
    func wait(_ waiter: Waiter) {
        let isWaiting = self.state.withLock { state in
            guard state.runs.isEmpty, state.end == nil, state.waiter == nil else { return false }
            state.waiter = waiter
            return true
        }
        guard !isWaiting else { return }
        switch self.take() {
        case .run(let run): waiter.resume(returning: run)
        case .ended(let error): waiter.resume(with: error.map { .failure($0) } ?? .success(nil))
        case .later: waiter.resume(throwing: URLError(.cancelled))
        }
    }

    /// Ends the channel from the reader's side: drops the queue and fails a waiting read with `URLError.cancelled`. Where
    /// bytes were dropped, later reads fail too, although the load has ended: a part must not look like the whole.
    func abandon() {
        let (waiter, isFirst) = self.state.withLock { state -> (Waiter?, Bool) in
            let isFirst = state.end == nil
            if isFirst || !state.runs.isEmpty { state.end = End(error: URLError(.cancelled)) }
            state.runs = []
            state.count = 0
            defer { state.waiter = nil }
            return (state.waiter, isFirst)
        }
        waiter?.resume(throwing: URLError(.cancelled))
        if isFirst { self.onAbandoned() }
    }
}

/// The reading end of a channel. Abandons the channel on deinit.
package final class ByteConsumer: Sendable {
    let channel: ByteChannel

    package init(_ channel: ByteChannel) {
        self.channel = channel
    }

    deinit {
        self.channel.abandon()
    }
}

/// Resumes the load of `URLSession.bytes` when the channel has reached its low watermark.
final class ChannelResumer: Sendable {
    private let waiting: AwaitedTask

    init(_ waiting: AwaitedTask) {
        self.waiting = waiting
    }

    func resume() {
        guard let loader = (self.waiting.task as? URLSessionDataTask)?.loader else { return }
        loader.core.executor.execute { loader.resumeChannel() }
    }
}

/// Reads a channel, and abandons it on deinit. Two readers of one channel share its bytes, and the first one released ends
/// it for both.
@usableFromInline
package final class ByteReader: Sendable {
    private let consumer: ByteConsumer

    package init(_ consumer: ByteConsumer) {
        self.consumer = consumer
    }

    deinit {
        self.consumer.channel.abandon()
    }

    /// The next bytes, at least one; `nil` at the end.
    ///
    /// Cancelling the awaiting task abandons the channel.
    /// - Throws: the loader's error; `URLError.cancelled` after a cancellation.
    package func nextRun(isolation actor: isolated (any Actor)? = #isolation) async throws -> [UInt8]? {
        let channel = self.consumer.channel
        if Task.isCancelled { channel.abandon() }
        switch channel.take() {
        case .run(let run): return run
        case .ended(let error):
            if let error { throw error }
            return nil
        case .later: break
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation(isolation: actor) { channel.wait($0) }
        } onCancel: {
            channel.abandon()
        }
    }
}

/// Iterates over the bytes of a channel; suspends only between runs.
@usableFromInline
package struct ByteIterator: AsyncIteratorProtocol {
    @usableFromInline var run: [UInt8] = []
    @usableFromInline var position = 0
    @usableFromInline let reader: ByteReader

    package init(_ reader: ByteReader) {
        self.reader = reader
    }

    @inlinable
    package mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        if self.position == self.run.count, try await !self.loadRun(isolation: actor) { return nil }
        defer { self.position += 1 }
        return self.run[self.position]
    }

    /// - Returns: whether there is another byte.
    @usableFromInline
    package mutating func loadRun(isolation actor: isolated (any Actor)?) async throws -> Bool {
        let run = try await self.reader.nextRun(isolation: actor)
        self.run = run ?? []
        self.position = 0
        return run != nil
    }
}
