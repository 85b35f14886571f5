import Foundation
import Synchronization

/// Content on its way to the delegate queue: gathered while the queue is busy, and counted, so that no more comes from
/// the network than somebody takes.
final class DeliveryWindow: Sendable {
    /// Bytes that are asked for in advance, and bytes below which more are.
    static let limit = 512 << 10
    static let watermark = 256 << 10

    private struct State {
        var waiting = Data()
        var wireBytes = 0
        var isScheduled = false
        /// Given to the delegate since more was asked for.
        var taken = 0
    }
    private let state = Mutex(State())

    /// - Returns: whether a message is to be scheduled that takes what waits.
    func add(_ data: Data, wireBytes: Int) -> Bool {
        self.state.withLock { state in
            if state.waiting.isEmpty { state.waiting = data } else { state.waiting.append(data) }
            state.wireBytes += wireBytes
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    func take() -> (data: Data, wireBytes: Int) {
        self.state.withLock { state in
            let all = (state.waiting, state.wireBytes)
            state.waiting = Data()
            state.wireBytes = 0
            state.isScheduled = false
            return all
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
