import Foundation
import Synchronization

/// Content on its way to the delegate queue: gathered while the queue is busy, and counted, so that no more comes from
/// the network than somebody takes.
final class DeliveryWindow: Sendable {
    /// Bytes that are asked for in advance, and bytes below which more are.
    static let limit = 512 << 10
    static let watermark = 256 << 10

    /// What is told at once.
    struct Piece: Sendable {
        var data: Data
        /// That it was before it was decoded.
        var wireBytes: Int
    }

    private struct State {
        var waiting: [Piece] = []
        var isScheduled = false
        /// Given to the delegate since more was asked for.
        var taken = 0
    }
    private let state = Mutex(State())

    /// - Parameter joins: whether it may be told together with what waits.
    /// - Returns: whether a message is to be scheduled that takes what waits.
    func add(_ data: Data, wireBytes: Int, joins: Bool) -> Bool {
        self.state.withLock { state in
            if joins, !state.waiting.isEmpty {
                state.waiting[state.waiting.count - 1].data.append(data)
                state.waiting[state.waiting.count - 1].wireBytes += wireBytes
            } else {
                state.waiting.append(Piece(data: data, wireBytes: wireBytes))
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    func take() -> [Piece] {
        self.state.withLock { state in
            defer {
                state.waiting = []
                state.isScheduled = false
            }
            return state.waiting
        }
    }

    /// The delegate has had so many bytes.
    /// - Returns: how many more may come; 0 while that is not worth a word.
    func done(_ count: Int) -> Int {
        self.state.withLock { state in
            state.taken += count
            guard state.taken >= Self.limit - Self.watermark else { return 0 }
            defer { state.taken = 0 }
            return state.taken
        }
    }
}
