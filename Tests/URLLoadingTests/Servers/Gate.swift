import Dispatch
import Synchronization

/// Suspends tasks until the gate is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [Int: @Sendable (Bool) -> Void] = [:]
        var last = 0
    }

    /// The longest wait in these tests, after which a result is taken to be missing.
    static let patience = DispatchTimeInterval.seconds(240)

    private let state = Mutex(State())

    var isOpen: Bool { self.state.withLock { $0.isOpen } }

    func open() {
        let waiting = self.state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.sorted { $0.key < $1.key }.map(\.value)
        }
        for work in waiting { work(true) }
    }

    @discardableResult
    func whenOpen(_ work: @escaping @Sendable () -> Void) -> Int? {
        self.add { if $0 { work() } }
    }

    /// - Returns: whether it was opened before the deadline.
    @discardableResult
    func pass(within patience: DispatchTimeInterval = Gate.patience) async -> Bool {
        await withCheckedContinuation { continuation in
            guard let number = self.add({ continuation.resume(returning: $0) }) else { return }
            DispatchQueue.global().asyncAfter(deadline: .now() + patience) { self.giveUp(number) }
        }
    }

    /// - Returns: the waiter's number; `nil` if the gate is open and the work is done.
    private func add(_ work: @escaping @Sendable (Bool) -> Void) -> Int? {
        let number: Int? = self.state.withLock { state in
            guard !state.isOpen else { return nil }
            state.last += 1
            state.waiting[state.last] = work
            return state.last
        }
        if number == nil { work(true) }
        return number
    }

    private func giveUp(_ number: Int) {
        self.state.withLock { $0.waiting.removeValue(forKey: number) }?(false)
    }
}
