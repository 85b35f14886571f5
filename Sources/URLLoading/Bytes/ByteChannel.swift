import ByteKernels
import Foundation
import HTTPTransport
import Synchronization

/// Bytes on their way from a loader to whoever awaits them, in bounded number. The loader's side of it; usable from any
/// thread.
package final class ByteChannel: Sendable {
    typealias Waiter = CheckedContinuation<[UInt8]?, any Error>

    enum Taking {
        case run([UInt8])
        case ended((any Error)?)
        case later
    }

    private struct State {
        var runs: [[UInt8]] = []
        var count = 0
        /// `offer` answered `false`.
        var isFull = false
        /// Told by the loader, or by the reader that went away.
        var end: End?
        var waiter: Waiter?
    }

    private struct End {
        let error: (any Error)?
    }

    /// Smaller pieces are joined, up to so many bytes.
    private static let runSize = 64 << 10

    /// Bytes that may wait: above, no more is wanted until there are at most half as many.
    package let limit: Int
    private let state = Mutex(State())
    private let wanted: @Sendable () -> Void
    private let abandoned: @Sendable () -> Void

    /// - Parameters:
    ///   - wanted: after `offer` answered `false`: more may come now. On the reader's thread.
    ///   - abandoned: nobody will read what still comes, because the reader went away or was cancelled. Not told behind
    ///     the end.
    package init(
        limit: Int = 1 << 20, wanted: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void
    ) {
        self.limit = limit
        self.wanted = wanted
        self.abandoned = abandoned
    }

    // MARK: From the loader

    /// Adds a copy of `bytes`, also above the limit.
    /// - Returns: whether more may come.
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

    /// Behind the last byte; the first call counts.
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

    func take() -> Taking {
        let (taking, wantsMore) = self.state.withLock { state -> (Taking, Bool) in
            guard !state.runs.isEmpty else { return (state.end.map { .ended($0.error) } ?? .later, false) }
            let run = state.runs.removeFirst()
            state.count -= run.count
            let wantsMore = state.isFull && state.count <= self.limit / 2 && state.end == nil
            if wantsMore { state.isFull = false }
            return (.run(run), wantsMore)
        }
        if wantsMore { self.wanted() }
        return taking
    }

    /// Answers `waiter` with the next bytes, or the end. There is one at a time.
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

    /// Nobody reads any more: what is here is dropped, and who asks is told that it was cancelled.
    func abandon() {
        let (waiter, isNews) = self.state.withLock { state -> (Waiter?, Bool) in
            state.runs = []
            state.count = 0
            let isNews = state.end == nil
            if isNews { state.end = End(error: URLError(.cancelled)) }
            defer { state.waiter = nil }
            return (state.waiter, isNews)
        }
        waiter?.resume(throwing: URLError(.cancelled))
        if isNews { self.abandoned() }
    }
}

/// The reader's side of a channel before anybody reads: when it goes away unread, the channel is abandoned.
package final class ByteConsumer: Sendable {
    let channel: ByteChannel

    package init(_ channel: ByteChannel) {
        self.channel = channel
    }

    deinit {
        self.channel.abandon()
    }
}

/// Lets more of a content come when whoever reads its bytes has room for it again.
final class ByteWindow: Sendable {
    private let waiting: AwaitedTask

    init(_ waiting: AwaitedTask) {
        self.waiting = waiting
    }

    func wanted() {
        guard let transfer = (self.waiting.task as? URLSessionDataTask)?.loader else { return }
        transfer.core.pool.execute { transfer.resumeChannel() }
    }
}

/// Who reads a channel: when it goes away, the channel is abandoned. What two readers of one channel get is shared out
/// between them, and the first to go ends it for both.
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
    /// - Throws: what the loader ended with; `URLError.cancelled` after a cancellation.
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

/// Byte by byte through the runs of a channel; suspends only between them.
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
