import Rooms
import SessionTasks

/// Consecutive messages of a room on one loop. They came together, so most members get them together, in the same bytes.
final class LoopBatch {
    /// Numbers on the loop of the first message, and of the one after the last.
    let start: UInt64
    let end: UInt64
    /// Without the messages' overhead, in bytes.
    let byteCount: Int
    private let messages: [LoopMessage]
    private let firstSequence: UInt64
    /// Members of this loop that sent some of the messages without a protocol, and do not get those.
    private let authors: Set<UInt64>
    private var plainFrames: SharedFrames?
    private var jsonFrames: SharedFrames?
    private var protobufFrames: SharedFrames?

    init(_ messages: [LoopMessage], start: UInt64, loop: Int) {
        self.messages = messages
        self.start = start
        self.end = start + UInt64(messages.count)
        self.byteCount = messages.reduce(0) { $0 + $1.cost - RoomMessage.overhead }
        self.firstSequence = messages.first?.message.sequence ?? .max
        let origins = messages.lazy.compactMap(\.message.origin)
        self.authors = Set(origins.filter { $0.loop == loop }.map(\.member))
    }

    var count: Int { self.messages.count }

    /// Whether a member gets all of the messages.
    /// - Parameter joinedAfter: sequence number of the last message before the member joined.
    func isWhole(for member: UInt64, joinedAfter: UInt64) -> Bool {
        self.firstSequence > joinedAfter && (self.authors.isEmpty || !self.authors.contains(member))
    }

    /// For members that speak no protocol.
    var plain: SharedFrames {
        if let made = self.plainFrames { return made }
        let made = SharedFrames(self.messages.compactMap(\.plain))
        self.plainFrames = made
        return made
    }

    /// As pushes of the protocol.
    func encoded(_ encoding: ProtocolEncoding) -> SharedFrames {
        if let made = encoding == .json ? self.jsonFrames : self.protobufFrames { return made }
        let made = SharedFrames(self.messages.map { $0.encoded(.commands(encoding)) })
        switch encoding {
        case .json: self.jsonFrames = made
        case .protobuf: self.protobufFrames = made
        }
        return made
    }
}
