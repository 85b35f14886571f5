import Foundation
import StreamTransport
import Synchronization

/// The event loops of all stream and WebSocket tasks of the process. Their threads start when the first is asked for,
/// and stay.
enum ConnectionLoops {
    /// More would only move packets between caches.
    private static let limit = 4

    private struct State {
        var loops: [Loop] = []
        var last = 0
    }
    private static let state = Mutex(State())

    /// Each in turn.
    /// - Returns: `nil` where the system has no descriptors or threads left; asked again, it tries again.
    static func next() -> Loop? {
        self.state.withLock { state in
            if state.loops.isEmpty {
                let count = min(ProcessInfo.processInfo.activeProcessorCount, Self.limit)
                state.loops = (try? LoopGroup(count: count))?.loops ?? []
            }
            guard !state.loops.isEmpty else { return nil }
            state.last = (state.last + 1) % state.loops.count
            return state.loops[state.last]
        }
    }
}
