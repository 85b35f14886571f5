import StreamTransport
import Synchronization
import WebSocketProtocol

/// The rooms of the process: knows on which loops a room has members, and carries messages there.
package final class ChatHub: Sendable {
    /// Members on each loop, by room.
    private let rooms = Mutex<[String: [Int: Int]]>([:])
    private let loops: [Loop]
    /// One for each ordered pair of loops that had something to hand over.
    private let channels = Mutex<[Int: ChatChannel]>([:])

    /// What the rooms of one loop may keep for members that are behind, in bytes.
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

    /// Bytes on their way to other loops, as messages count for them.
    package var bytesUnderWay: Int {
        self.channels.withLock { $0.values.reduce(0) { $0 + $1.cost } }
    }

    /// Gives `messages` to all loops but `origin` on which the room has members.
    /// - Returns: those of the loops that are behind. Each calls `ChatFloor.caughtUp` when it is no more.
    func carry(_ messages: [ChatMessage], to room: String, from origin: Int) -> [Int] {
        let others = self.rooms.withLock { $0[room]?.keys.filter { $0 != origin } ?? [] }
        return others.filter { target in
            guard let channel = self.channel(from: origin, to: target) else { return false }
            let result = channel.add(messages, room: room)
            if result.tellsTaker { self.announce(from: origin, to: target) }
            return result.isFull
        }
    }

    /// At most one announcement of each channel is on its way: the channel asks for the next when it has been emptied.
    private func announce(from origin: Int, to target: Int) {
        let loop = self.loops[target]
        loop.execute {
            if let floor = ChatFloor.current(on: loop) { return floor.messagesCame(from: origin) }
            // The gateway's part on that loop is gone, and its members with it.
            while self.take(from: origin, to: target, upTo: .max).hasMore {}
        }
    }

    /// Takes a part of what came from another loop, and tells that loop when it may go on.
    func take(from origin: Int, to target: Int, upTo limit: Int) -> ChatChannel.Part {
        guard let part = self.channel(from: origin, to: target)?.take(upTo: limit) else { return ChatChannel.Part() }
        if part.wakesSender {
            let loop = self.loops[origin]
            loop.execute { ChatFloor.current(on: loop)?.caughtUp(target) }
        }
        return part
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
