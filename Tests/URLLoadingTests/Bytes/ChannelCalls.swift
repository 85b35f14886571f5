import Synchronization
import URLLoading

/// The calls of a channel to its loader.
final class ChannelCalls: Sendable {
    private let counts = Mutex((wanted: 0, abandoned: 0))

    var wanted: Int { self.counts.withLock { $0.wanted } }
    var abandoned: Int { self.counts.withLock { $0.abandoned } }

    func channel(limit: Int = 1 << 20) -> ByteChannel {
        ByteChannel(limit: limit) {
            self.counts.withLock { $0.wanted += 1 }
        } abandoned: {
            self.counts.withLock { $0.abandoned += 1 }
        }
    }
}
