import DequeModule
import RedisEngine

/// Channels that a client subscribes to, and the commands that its connection has sent for them.
///
/// Commands are answered in order, so that of each channel only the last command and the number of unanswered ones matter.
struct RedisSubscriptions {
    /// Channels of one command at most, and bytes of their names unless it is one channel.
    static let batchChannels = 256
    static let batchBytes = 32 << 10
    /// Commands that are unanswered: later commands do not wait for more than these.
    static let maximumBatches = 16

    struct Batch: Equatable {
        let isSubscribed: Bool
        let channels: [[UInt8]]
    }

    private struct Channel {
        let slot: Int
        var isWanted = false
        /// Whether the last command subscribed to it.
        var isSent = false
        /// Whether it is in the queue.
        var isQueued = false
        /// Commands for it that are not answered.
        var unanswered = 0

        var isSubscribed: Bool { self.isWanted && self.isSent && self.unanswered == 0 }
    }

    /// Whether the channels of one command must have the same slot.
    private let isSharded: Bool
    private var channels: [[UInt8]: Channel] = [:]
    private var queue: Deque<[UInt8]> = []
    private var unansweredBatches = 0
    /// Whether there is a connection for commands. Without one, only wanted channels are known.
    private var isConnected = false

    init(isSharded: Bool) {
        self.isSharded = isSharded
    }

    var count: Int { self.channels.count }

    /// - Returns: whether there is something to send.
    mutating func set(_ name: [UInt8], isWanted: Bool) -> Bool {
        guard self.isConnected || isWanted else {
            // Without a connection nothing can be sent, and perhaps never will be.
            self.channels[name] = nil
            return false
        }
        var channel = self.channels[name] ?? Channel(slot: self.isSharded ? RedisKeySlot.of(name) : 0)
        channel.isWanted = isWanted
        if self.isConnected, !channel.isQueued, channel.isSent != isWanted {
            channel.isQueued = true
            self.queue.append(name)
        }
        self.store(name, channel)
        return !self.queue.isEmpty
    }

    private mutating func store(_ name: [UInt8], _ channel: Channel) {
        let isOver = !channel.isWanted && !channel.isSent && !channel.isQueued && channel.unanswered == 0
        self.channels[name] = isOver ? nil : channel
    }

    /// - Returns: the next command; `nil` if there is none, or too many are unanswered.
    mutating func nextBatch() -> Batch? {
        guard self.unansweredBatches < Self.maximumBatches else { return nil }
        var names: [[UInt8]] = []
        var (bytes, isSubscribed, slot) = (0, false, 0)
        while let name = self.queue.first, var channel = self.channels[name] {
            if channel.isWanted != channel.isSent {
                if names.isEmpty {
                    isSubscribed = channel.isWanted
                    slot = channel.slot
                }
                bytes += name.count
                let fits = names.isEmpty || names.count < Self.batchChannels && bytes <= Self.batchBytes
                guard fits, channel.isWanted == isSubscribed, channel.slot == slot else { break }
                names.append(name)
                channel.isSent = isSubscribed
                channel.unanswered += 1
            }
            channel.isQueued = false
            self.queue.removeFirst()
            self.store(name, channel)
        }
        guard !names.isEmpty else { return nil }
        self.unansweredBatches += 1
        return Batch(isSubscribed: isSubscribed, channels: names)
    }

    /// The server confirmed the subscription to one channel.
    /// - Returns: whether its messages arrive from now on.
    mutating func confirmed(_ name: [UInt8]) -> Bool {
        guard var channel = self.channels[name], channel.unanswered > 0 else { return false }
        channel.unanswered -= 1
        self.store(name, channel)
        return channel.isSubscribed
    }

    /// The server ended the subscription to one channel.
    /// - Returns: whether it did so by itself; the channel is forgotten then.
    mutating func ended(_ name: [UInt8]) -> Bool {
        guard let channel = self.channels[name], channel.isSubscribed else { return false }
        self.forget(name)
        return true
    }

    /// A command was answered.
    mutating func answered(_ batch: Batch) {
        self.unansweredBatches -= 1
        // Subscriptions are confirmed one by one.
        guard !batch.isSubscribed else { return }
        for name in batch.channels {
            guard var channel = self.channels[name], channel.unanswered > 0 else { continue }
            channel.unanswered -= 1
            self.store(name, channel)
        }
    }

    /// A command was answered with an error: none of its channels is subscribed.
    /// - Returns: channels that are still wanted. They are forgotten.
    mutating func refused(_ batch: Batch) -> [[UInt8]] {
        self.unansweredBatches -= 1
        var refused: [[UInt8]] = []
        for name in batch.channels {
            guard var channel = self.channels[name], channel.unanswered > 0 else { continue }
            channel.unanswered -= 1
            if batch.isSubscribed, channel.unanswered == 0, channel.isWanted { refused.append(name) }
            self.store(name, channel)
        }
        for name in refused { self.forget(name) }
        return refused
    }

    private mutating func forget(_ name: [UInt8]) {
        guard var channel = self.channels[name] else { return }
        channel.isWanted = false
        channel.isSent = false
        self.store(name, channel)
    }

    /// Whether messages of the channel are for the owner.
    func delivers(_ name: [UInt8]) -> Bool { self.channels[name]?.isSubscribed ?? false }

    /// The connection ended. Channels that are not wanted are forgotten.
    mutating func connectionEnded() {
        guard self.isConnected else { return }
        self.isConnected = false
        self.queue = []
        self.unansweredBatches = 0
        self.channels = self.channels.filter { $0.value.isWanted }
        for name in self.channels.keys {
            self.channels[name]?.isSent = false
            self.channels[name]?.unanswered = 0
            self.channels[name]?.isQueued = false
        }
    }

    /// There is a new connection, on which nothing was sent.
    mutating func connectionBecameReady() {
        self.connectionEnded()
        self.isConnected = true
        for name in self.channels.keys {
            self.channels[name]?.isQueued = true
            self.queue.append(name)
        }
        // Commands of a cluster take channels of one slot only.
        if self.isSharded {
            self.queue = Deque(self.queue.sorted { (self.channels[$0]?.slot ?? 0) < (self.channels[$1]?.slot ?? 0) })
        }
    }
}
