import Dispatch
import Foundation
import Synchronization

/// Brings a storage's cookies to its file: the first change at once, those that follow within a second together.
final class CookieJournal: Sendable {
    private struct State {
        var isChanged = false
        var isScheduled = false
        var lastWrite: ContinuousClock.Instant?
    }

    /// What the storage holds when it is asked.
    typealias Snapshot = @Sendable () -> [HTTPCookie]

    private static let pause = Duration.seconds(1)

    private let file: CookieFile
    private let state = Mutex(State())
    /// Held from the asking to the end of the writing, so that nothing older takes the place of what is newer.
    private let writing = Mutex(())
    private let queue = DispatchQueue(label: "URLLoading.cookies", qos: .utility)

    init(file: CookieFile) { self.file = file }

    /// Tells of a change after it was made, outside of the storage's lock.
    func changed(_ snapshot: @escaping Snapshot) {
        let isDue = self.state.withLock { state in
            state.isChanged = true
            guard let last = state.lastWrite, .now - last < Self.pause else { return true }
            if !state.isScheduled {
                state.isScheduled = true
                self.queue.asyncAfter(deadline: .now() + 1) { self.flush(snapshot) }
            }
            return false
        }
        if isDue { self.flush(snapshot) }
    }

    /// Writes what is not written yet.
    func flush(_ snapshot: Snapshot) {
        self.writing.withLock { _ in
            let isChanged = self.state.withLock { state in
                defer { state.isChanged = false }
                state.isScheduled = false
                if state.isChanged { state.lastWrite = .now }
                return state.isChanged
            }
            if isChanged { self.file.write(snapshot()) }
        }
    }
}
