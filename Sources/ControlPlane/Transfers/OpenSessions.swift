import Foundation
import Synchronization
import URLLoading

/// Counts the sessions that are not invalid yet: the delegate of each, so that whoever ends them can wait for the last.
final class OpenSessions: NSObject, URLSessionDelegate, Sendable {
    private struct State {
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func make(_ configuration: URLSessionConfiguration) -> URLSession {
        self.state.withLock { $0.count += 1 }
        return URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for call in waiting { call() }
    }

    /// Calls `work` when none is left: their tasks are over then, and the files of those are gone.
    func whenNone(_ work: @escaping @Sendable () -> Void) {
        let isNone = self.state.withLock { state in
            if state.count > 0 { state.waiting.append(work) }
            return state.count == 0
        }
        if isNone { work() }
    }
}
