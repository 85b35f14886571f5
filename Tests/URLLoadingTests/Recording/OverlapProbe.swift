import Foundation
import Synchronization
import URLLoading

/// A delegate that detects concurrent calls.
final class OverlapProbe: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var inside = 0
        var overlaps = 0
        var finished = 0
        var awaited = Int.max
    }

    private let state = Mutex(State())
    private let done = Outcome<Bool>()

    var overlaps: Int { self.state.withLock { $0.overlaps } }

    func finished(_ count: Int) async throws -> Bool {
        let isThere = self.state.withLock { state in
            state.awaited = count
            return state.finished >= count
        }
        return isThere ? true : try await self.done.value()
    }

    private func enter() {
        self.state.withLock { state in
            state.inside += 1
            if state.inside > 1 { state.overlaps += 1 }
        }
        sched_yield()
        self.state.withLock { $0.inside -= 1 }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { self.enter() }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.enter()
        let isLast = self.state.withLock { state in
            state.finished += 1
            return state.finished >= state.awaited
        }
        if isLast { self.done.give(true) }
    }
}
