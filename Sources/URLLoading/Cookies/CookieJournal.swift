import Dispatch
import Foundation
import Synchronization

/// Brings a storage's cookies to its file: the first change at once, those that follow within a second together.
final class CookieJournal: Sendable {
    private struct State {
        /// What is still to be written.
        var pending: [HTTPCookie]?
        var lastWrite: ContinuousClock.Instant?
        var isScheduled = false
    }

    private static let pause = Duration.seconds(1)

    private let file: CookieFile
    private let state = Mutex(State())
    /// Held while writing, so that what is older never takes the place of what is newer.
    private let writing = Mutex(())
    private let queue = DispatchQueue(label: "URLLoading.cookies", qos: .utility)

    init(file: CookieFile) { self.file = file }

    /// Called in the order of the changes; does not write yet.
    func note(_ cookies: [HTTPCookie]) {
        self.state.withLock { $0.pending = cookies }
    }

    func writeWhenDue() {
        let now = ContinuousClock.now
        let isDue = self.state.withLock { state in
            if let last = state.lastWrite, now - last < Self.pause {
                if !state.isScheduled {
                    state.isScheduled = true
                    self.queue.asyncAfter(deadline: .now() + 1) { [self] in self.flush() }
                }
                return false
            }
            return true
        }
        if isDue { self.flush() }
    }

    func flush() {
        self.writing.withLock { _ in
            let cookies = self.state.withLock { state in
                defer { state.pending = nil }
                state.isScheduled = false
                if state.pending != nil { state.lastWrite = .now }
                return state.pending
            }
            if let cookies { self.file.write(cookies) }
        }
    }
}
