import DequeModule
import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization
import WireText

/// Copies the traffic of one connection into a `TapQueue`.
final class TapSession: Sendable {
    /// Numbers the pieces, skipped ones included. Confined to the connection's loop.
    private final class Sequence {
        private var last: UInt64 = 0

        func stamp(_ piece: TapPiece) -> TapPiece {
            self.last += 1
            var piece = piece
            piece.number = self.last
            piece.at = Machine.wallClockMilliseconds()
            return piece
        }

        func skip(_ count: Int) { self.last += UInt64(count) }
    }

    private let endpoint: RelayEndpoint
    private let queue: TapQueue
    private let tap: LoopIsolated<TaskTap>

    init(_ endpoint: RelayEndpoint, _ queue: TapQueue, pieceLimit: Int, sampling: Int) {
        self.endpoint = endpoint
        self.queue = queue
        let sequence = Sequence()
        self.tap = LoopIsolated(
            TaskTap(
                pieceLimit: pieceLimit, sampling: sampling, hasCapacity: { queue.hasCapacity },
                take: { queue.enqueue(sequence.stamp($0)) },
                skipped: { count in
                    sequence.skip(count)
                    queue.skip(count)
                }), on: endpoint.loop)
    }

    func start() async {
        let (queue, tap) = (self.queue, self.tap)
        await self.endpoint.onLoop { endpoint in
            endpoint.task.add(tap.value)
            switch endpoint {
            case .stream(let task): task.whenEnded { _ in queue.finish() }
            case .webSocket(let task): task.whenEnded { _ in queue.finish() }
            }
        }
    }

    func stop() async {
        let tap = self.tap
        await self.endpoint.onLoop { $0.task.remove(tap.value) }
    }
}

/// Passes pieces from a loop to the client of a tap. Bounded: pieces beyond the limit are skipped and counted, so that a
/// slow client never slows the connection.
final class TapQueue: Sendable {
    private static let pieceLimit = 512
    private static let byteLimit = 1 << 20

    struct Batch: Sendable {
        let pieces: [TapPiece]
        /// Pieces and messages skipped since the last batch.
        let skipped: Int
    }

    private struct State {
        var pieces: Deque<TapPiece> = []
        var bytes = 0
        var isOver = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    // Atomics outside the mutex, as the loop accesses them for each message.
    private let room = Atomic<Bool>(true)
    private let skipped = Atomic<Int>(0)

    var hasCapacity: Bool {
        self.room.load(ordering: .relaxed)
    }

    func enqueue(_ piece: TapPiece) {
        self.change { state in
            state.pieces.append(piece)
            state.bytes += piece.bytes.count
            let isFull = state.pieces.count >= Self.pieceLimit || state.bytes >= Self.byteLimit
            if isFull { self.room.store(false, ordering: .relaxed) }
        }
    }

    /// Counts skipped pieces, reported with the next piece or at the end.
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

    /// Waits for pieces.
    /// - Returns: `nil` at the end, or when the wait is cancelled.
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

    /// Pieces skipped since the last batch.
    var skippedSinceLast: Int { self.skipped.load(ordering: .relaxed) }

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

/// Writes tap pieces as JSON, in the form of the wire model `TapRecord`.
enum TapWriter {
    /// - Parameter skipped: number of pieces skipped before it.
    static func json(_ piece: TapPiece, skipped: Int) -> [UInt8] {
        var text = JSONText(capacity: 128 + piece.bytes.count * 2)
        text.beginObject()
        text.member("number", piece.number)
        text.member("at", time: piece.at)
        text.member("way", piece.way.rawValue)
        text.member("content", piece.content.rawValue)
        text.member("sizeBytes", piece.count)
        text.member("startsMessage", piece.startsMessage)
        text.member("endsMessage", piece.endsMessage)
        if piece.content == .text, let whole = String(validating: piece.bytes, as: UTF8.self) {
            text.member("text", whole)
        } else if piece.content != .frames {
            text.member("data", Base64.encoded(piece.bytes))
        }
        text.member("skipped", skipped)
        text.endObject()
        return text.bytes
    }
}
