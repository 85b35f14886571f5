import ByteKernels
import HTTPTransport
import Synchronization
import URLLoading

/// Pulls a body like an exchange: until it has no bytes ready, and again when it announces some.
final class BodyDrain: Sendable {
    struct Outcome: Sendable {
        var bytes: [UInt8] = []
        var end = BodyRead.later
    }

    private struct State {
        var outcome = Outcome()
        var isPulling = false
        var isWanted = false
        var done: CheckedContinuation<Void, Never>?
    }

    private let body: any BodySource
    private let room: Int
    private let state = Mutex(State())

    private init(_ body: any BodySource, room: Int) {
        self.body = body
        self.room = room
    }

    /// Pulls to the end, at most `room` bytes at a time.
    static func run(_ body: any BodySource, room: Int = 100_000) async -> Outcome {
        let drain = BodyDrain(body, room: room)
        body.whenAvailable { drain.pull() }
        await withCheckedContinuation { continuation in
            drain.state.withLock { $0.done = continuation }
            drain.pull()
        }
        return drain.state.withLock { $0.outcome }
    }

    private func pull() {
        let begins = self.state.withLock { state in
            state.isWanted = true
            defer { state.isPulling = true }
            return !state.isPulling
        }
        guard begins else { return }
        while self.state.withLock({ state in
            state.isPulling = state.isWanted
            defer { state.isWanted = false }
            return state.isWanted
        }) {
            self.pullOn()
        }
    }

    private func pullOn() {
        var bytes = [UInt8](repeating: 0, count: self.room)
        while true {
            let read = bytes.withMutableRawSpan { self.body.read(into: &$0) }
            switch read {
            case .bytes(let count): self.state.withLock { $0.outcome.bytes += bytes.prefix(count) }
            case .later: return
            case .end, .failed:
                let done = self.state.withLock { state in
                    state.outcome.end = read
                    defer { state.done = nil }
                    return state.done
                }
                done?.resume()
                return
            }
        }
    }
}
