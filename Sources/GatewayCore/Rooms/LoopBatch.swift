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
    /// Members of this loop that sent some of the messages without a protocol, and do not get those. In order.
    private let authors: [UInt64]
    private lazy var plainFrames = SharedFrames(self.messages.compactMap(\.plain))
    private lazy var jsonFrames = SharedFrames(self.messages.map { $0.encoded(.commands(.json)) })
    private lazy var protobufFrames = SharedFrames(self.messages.map { $0.encoded(.commands(.protobuf)) })
    /// For members with deltas that have what the first publication is the difference to.
    private var deltaFrames: [ProtocolEncoding: SharedFrames] = [:]

    init(_ messages: [LoopMessage], start: UInt64, loop: Int) {
        self.messages = messages
        self.start = start
        self.end = start + UInt64(messages.count)
        self.byteCount = messages.reduce(0) { $0 + $1.cost - RoomMessage.overhead }
        self.firstSequence = messages.first?.message.sequence ?? .max
        let origins = messages.lazy.compactMap(\.message.origin)
        self.authors = Set(origins.filter { $0.loop == loop }.map(\.member)).sorted()
    }

    var count: Int { self.messages.count }

    /// Whether a member gets all of the messages.
    /// - Parameter joinedAfter: sequence number of the last message before the member joined.
    func isWhole(for member: UInt64, joinedAfter: UInt64) -> Bool {
        guard self.firstSequence > joinedAfter else { return false }
        let index = self.authors.partitionIndex { $0 >= member }
        return index == self.authors.count || self.authors[index] != member
    }

    /// Whether the filter leaves out none of the messages.
    func isWhole(for filter: TagFilter) -> Bool { self.messages.allSatisfy { $0.message.isWanted(by: filter) } }

    /// - Parameter encoding: of the protocol's pushes; `nil` for members that speak no protocol.
    func frames(_ encoding: ProtocolEncoding?, usesDeltas: Bool = false) -> SharedFrames {
        if usesDeltas, let encoding { return self.deltaFrames(encoding) }
        return switch encoding {
        case nil: self.plainFrames
        case .json: self.jsonFrames
        case .protobuf: self.protobufFrames
        }
    }

    private func deltaFrames(_ encoding: ProtocolEncoding) -> SharedFrames {
        if let made = self.deltaFrames[encoding] { return made }
        var base = self.firstBase
        let made = SharedFrames(
            self.messages.map { message in
                defer { if message.isPublication { base = message.message.sequence } }
                return message.encoded(encoding, after: base)
            })
        self.deltaFrames[encoding] = made
        return made
    }

    /// Whether the first publication is whole, or a difference to the one that a member got last.
    /// - Parameter base: sequence number of that; `nil` if the member got none.
    func continues(from base: UInt64?) -> Bool { self.firstBase == nil || self.firstBase == base }

    private var firstBase: UInt64? { self.messages.first(where: \.isPublication)?.message.delta?.base }

    /// Sequence number of the last publication; `nil` without any.
    var lastPublication: UInt64? { self.messages.last(where: \.isPublication)?.message.sequence }
}

extension Array {
    /// Index of the first element for which the condition holds, as it must for all elements after it; else the count.
    func partitionIndex(where holds: (Element) -> Bool) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
