import DequeModule
import SessionTasks
import Synchronization

/// Pieces on their way from a loop to somebody who looks on. Bounded: what finds no room is skipped and counted, so that
/// a slow looker slows nothing.
final class TapQueue: Sendable {
    static let pieceLimit = 512
    /// Bytes that may wait.
    static let byteLimit = 1 << 20

    struct Batch: Sendable {
        let pieces: [TapPiece]
        /// Pieces and messages left out since the last batch.
        let skipped: Int
    }

    private struct State {
        var pieces: Deque<TapPiece> = []
        var bytes = 0
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    /// Beside the state, as is what follows, because it is asked for each message that passes: without a lock.
    private let room = Atomic<Bool>(true)
    private let skipped = Atomic<Int>(0)

    var hasRoom: Bool {
        self.room.load(ordering: .relaxed)
    }

    func put(_ piece: TapPiece) {
        self.change { state in
            state.pieces.append(piece)
            state.bytes += piece.bytes.count
            let isFull = state.pieces.count >= Self.pieceLimit || state.bytes >= Self.byteLimit
            if isFull { self.room.store(false, ordering: .relaxed) }
        }
    }

    /// Told of with the next piece, or at the end.
    func skip(_ count: Int) {
        self.skipped.wrappingAdd(count, ordering: .relaxed)
    }

    func finish() {
        self.change { $0.isOver = true }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let waiting = self.state.withLock { state in
            body(&state)
            return state.waiting.take()
        }
        waiting?.resume()
    }

    /// What has come; waits while nothing has.
    /// - Returns: `nil` at the end, or when the wait is cancelled. What was left out since the last piece is told by
    ///   `remainder`.
    func next() async -> Batch? {
        while !Task.isCancelled {
            let (batch, isOver) = self.state.withLock { state -> (Batch?, Bool) in
                guard !state.pieces.isEmpty else { return (nil, state.isOver) }
                defer {
                    state.pieces = []
                    state.bytes = 0
                    self.room.store(true, ordering: .relaxed)
                }
                let skipped = self.skipped.exchange(0, ordering: .relaxed)
                return (Batch(pieces: Array(state.pieces), skipped: skipped), state.isOver)
            }
            if let batch { return batch }
            if isOver { return nil }
            await self.wait()
        }
        return nil
    }

    /// Left out since the last piece.
    var remainder: Int { self.skipped.load(ordering: .relaxed) }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = !state.pieces.isEmpty || state.isOver || Task.isCancelled
                    if !isDone { state.waiting = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.take() }?.resume()
        }
    }
}
