import StreamTransport
import Synchronization
import WebSocketProtocol

/// The rooms of the process: knows on which loops a room has members, so that a message goes only there.
package final class ChatHub: Sendable {
    /// Members on each loop, by room.
    private let rooms = Mutex<[String: [Int: Int]]>([:])
    private let loops: [Loop]

    package init(loops: [Loop]) {
        self.loops = loops
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

    /// Gives `message` to the room's members on all loops but `origin`, whose own floor has done so already.
    func carry(
        _ message: ChatMessage, to room: String, from origin: Int, floor: @escaping @Sendable (Loop) -> ChatFloor?
    ) {
        let others = self.rooms.withLock { $0[room]?.keys.filter { $0 != origin } ?? [] }
        for index in others where index < self.loops.count {
            let loop = self.loops[index]
            loop.execute { floor(loop)?.deliver(message, to: room, except: nil) }
        }
    }
}
