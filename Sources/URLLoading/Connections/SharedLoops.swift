import Foundation
import StreamTransport
import Synchronization

/// The loops of all connections of the process. Their threads start when they are first needed and are never stopped.
enum SharedLoops {
    /// More loops would only move packets between CPU caches.
    private static let limit = min(ProcessInfo.processInfo.activeProcessorCount, 4)

    private struct State {
        var loops: [Loop] = []
        var last = 0
    }
    private static let state = Mutex(State())

    /// The next loop in round-robin order; a new one below the limit.
    /// - Returns: `nil` if the system has no descriptors or threads for a first loop; the next call tries again.
    static func next() -> Loop? {
        self.state.withLock { state in
            if state.loops.count < self.limit, let group = try? LoopGroup(count: 1) {
                state.loops += group.loops
                state.last = state.loops.count - 1
                return state.loops.last
            }
            guard !state.loops.isEmpty else { return nil }
            state.last = (state.last + 1) % state.loops.count
            return state.loops[state.last]
        }
    }
}
