import StreamTransport
import Synchronization

/// Returns the memory of bursts to the system: of completed handshakes, of tunnels with slow readers.
///
/// The C library keeps memory freed in the middle of its heaps. While a gateway has connections, and once after the
/// last, a separate thread checks how much that is, at most every `interval`, and returns it if worthwhile.
final class MemoryTrimmer: Sendable {
    static let interval = Duration.seconds(10)
    /// Idle bytes that are not worth returning.
    private static let threshold = 16 << 20

    private struct State {
        var nextCheck = MonotonicInstant(nanoseconds: .min)
        /// Bytes that the last attempt could not return because single blocks in use hold their pages.
        var unreturnable = 0
    }

    private let state = Mutex(State())

    /// From any loop; only one of several calls within `interval` does anything.
    func checkMemory(at now: MonotonicInstant) {
        let isDue = self.state.withLock { state in
            guard now >= state.nextCheck else { return false }
            state.nextCheck = now.advanced(by: Self.interval)
            return true
        }
        guard isDue else { return }
        SystemThread.start(named: "memory") { self.returnIdleMemory() }
    }

    private func returnIdleMemory() {
        guard let idle = Machine.idleMemory else { return }
        let isWorthwhile = self.state.withLock { state in
            state.unreturnable = min(state.unreturnable, max(0, idle))
            return idle >= state.unreturnable + Self.threshold
        }
        guard isWorthwhile else { return }
        Machine.returnIdleMemory()
        let left = max(0, Machine.idleMemory ?? 0)
        self.state.withLock { $0.unreturnable = left }
    }
}
