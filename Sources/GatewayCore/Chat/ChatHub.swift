import DequeModule
import StreamTransport
import Synchronization
import WebSocketProtocol

/// Forwards messages between the loops on which a room has members.
package final class ChatHub: Sendable {
    /// Members on each loop, by room.
    private let rooms = Mutex<[String: [Int: Int]]>([:])
    private let loops: [Loop]
    /// One channel for each ordered pair of loops, created on first use.
    private let channels = Mutex<[Int: ChatChannel]>([:])

    /// Bytes that the rooms of one loop may keep for slow members.
    let backlogLimit: Int

    package init(loops: [Loop], backlogLimit: Int = 64 << 20) {
        self.loops = loops
        self.backlogLimit = backlogLimit
    }

    package var loopCount: Int { self.loops.count }

    func joined(_ room: String, onLoop index: Int) {
        self.rooms.withLock { $0[room, default: [:]][index, default: 0] += 1 }
    }

    func left(_ room: String, onLoop index: Int) {
        self.rooms.withLock { rooms in
            guard let count = rooms[room]?[index] else { return }
            if count > 1 {
                rooms[room]?[index] = count - 1
            } else {
                rooms[room]?[index] = nil
                if rooms[room]?.isEmpty == true { rooms[room] = nil }
            }
        }
    }

    /// Total cost of the messages queued for other loops, in bytes.
    package var bytesUnderWay: Int {
        self.channels.withLock { $0.values.reduce(0) { $0 + $1.cost } }
    }

    /// Forwards `messages` to all loops but `origin` on which the room has members.
    /// - Returns: the loops whose channel is full. Each calls `LoopRooms.drained` once its channel has space.
    func forward(_ messages: [ChatMessage], to room: String, from origin: Int) -> [Int] {
        let others = self.rooms.withLock { $0[room]?.keys.filter { $0 != origin } ?? [] }
        return others.filter { target in
            guard let channel = self.channel(from: origin, to: target) else { return false }
            let result = channel.add(messages, room: room)
            if result.notifiesReceiver { self.announce(from: origin, to: target) }
            return result.isFull
        }
    }

    /// At most one announcement of each channel is on its way: the channel asks for the next when it has been emptied.
    private func announce(from origin: Int, to target: Int) {
        let loop = self.loops[target]
        loop.execute {
            if let rooms = LoopRooms.current(on: loop) { return rooms.messagesArrived(from: origin) }
            // The `LoopGateway` of that loop is released, and its members with it.
            while self.take(from: origin, to: target, upTo: .max).hasMore {}
        }
    }

    /// Takes a batch from another loop, and lets that loop resume when the channel is half empty.
    func take(from origin: Int, to target: Int, upTo limit: Int) -> ChatChannel.Batch {
        guard let batch = self.channel(from: origin, to: target)?.take(upTo: limit) else { return ChatChannel.Batch() }
        if batch.wakesSender {
            let loop = self.loops[origin]
            loop.execute { LoopRooms.current(on: loop)?.drained(target) }
        }
        return batch
    }

    private func channel(from origin: Int, to target: Int) -> ChatChannel? {
        guard self.loops.indices.contains(origin), self.loops.indices.contains(target) else { return nil }
        let number = origin * self.loops.count + target
        return self.channels.withLock { channels in
            if let made = channels[number] { return made }
            let made = ChatChannel()
            channels[number] = made
            return made
        }
    }
}

/// Messages from one loop to another. Bounded: a sender that fills the channel must pause its sources, and is woken
/// when half of it has been taken.
package final class ChatChannel: Sendable {
    /// Cost of the queued messages, in bytes, from which on the channel is full.
    package static let highWatermark = 1 << 20
    package static let lowWatermark = highWatermark / 2

    package struct Batch {
        package var messages: [(room: String, message: ChatMessage)] = []
        /// More messages are queued.
        package var hasMore = false
        /// The sending loop must be notified: it waits for space, and there is space again.
        package var wakesSender = false
    }

    package struct AddResult: Equatable {
        /// The receiving loop must be notified: it has emptied the channel since it was last notified.
        package var notifiesReceiver: Bool
        package var isFull: Bool
    }

    private struct State {
        var messages: Deque<(room: String, message: ChatMessage)> = []
        var cost = 0
        var isAnnounced = false
        var senderWaits = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Cost of the queued messages in bytes.
    package var cost: Int { self.state.withLock { $0.cost } }

    /// Enqueues all of `messages`, even beyond the limit.
    package func add(_ messages: [ChatMessage], room: String) -> AddResult {
        self.state.withLock { state in
            for message in messages {
                state.messages.append((room, message))
                state.cost += message.cost
            }
            let isFull = state.cost >= Self.highWatermark
            if isFull { state.senderWaits = true }
            defer { state.isAnnounced = true }
            return AddResult(notifiesReceiver: !state.isAnnounced, isFull: isFull)
        }
    }

    /// Removes messages in order up to a total cost of `limit` bytes, at least one.
    package func take(upTo limit: Int) -> Batch {
        self.state.withLock { state in
            var batch = Batch()
            var taken = 0
            while taken < limit, let first = state.messages.popFirst() {
                taken += first.message.cost
                batch.messages.append(first)
            }
            state.cost -= taken
            batch.hasMore = !state.messages.isEmpty
            if !batch.hasMore { state.isAnnounced = false }
            if state.senderWaits, state.cost <= Self.lowWatermark {
                state.senderWaits = false
                batch.wakesSender = true
            }
            return batch
        }
    }
}
