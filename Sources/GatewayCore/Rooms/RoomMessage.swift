import ByteKernels
import Rooms
import SessionTasks
import WebSocketProtocol
import WireText

/// Something that happened in a room, for its members. All loops and members share its bytes.
package final class RoomMessage: Sendable {
    package enum Content: Sendable {
        /// The data of a message without a protocol may be empty: it is made when a client of the protocol reads it.
        case publication(Publication)
        case join(ClientInfo)
        case leave(ClientInfo)
        /// Messages are missing here. Members that must not miss any subscribe again.
        /// - Parameter position: of the last publication before those that follow.
        case interruption(StreamPosition)
    }

    /// A message of a client that speaks no protocol, as it was received.
    package struct Plain: Sendable {
        package let kind: MessageKind
        package let bytes: [UInt8]

        package init(kind: MessageKind, bytes: [UInt8]) {
            self.kind = kind
            self.bytes = bytes
        }

        /// As others read it: a JSON value if the text is one, else a JSON string; bytes for a binary message.
        var payload: Payload {
            guard self.kind == .text else { return .binary(self.bytes) }
            if let value = Payload.json(text: self.bytes) { return value }
            var text: [UInt8] = []
            text.append(jsonString: self.bytes)
            return .json(text)
        }
    }

    /// A member on its loop.
    struct Origin: Sendable, Equatable {
        let loop: Int
        let member: UInt64
    }

    /// Memory of a message in all queues together, without its bytes.
    static let overhead = 512

    let content: Content
    /// `nil` if a client of the protocol, or the server, published it.
    let plain: Plain?
    /// The member to which it is not delivered: the one that sent it without a protocol.
    let origin: Origin?
    /// Number in the room, from 1 on, of messages of all kinds. Unlike an offset it is not shown.
    let sequence: UInt64
    /// Of a publication, if there is one before it and the room has members that want differences.
    let delta: PublicationDelta?

    /// In limits, in bytes, so that one limit bounds both large and empty messages.
    var cost: Int {
        let size =
            switch self.content {
            case .publication(let publication): max(publication.data.bytes.count, self.plain?.bytes.count ?? 0)
            case .join, .leave, .interruption: 64
            }
        return size + Self.overhead
    }

    /// Whether a member with this filter gets it. Filters are for publications alone.
    func isWanted(by filter: TagFilter) -> Bool {
        guard case .publication(let publication) = self.content else { return true }
        return filter.matches(publication.tags)
    }

    init(
        _ content: Content, plain: Plain? = nil, origin: Origin? = nil, sequence: UInt64,
        delta: PublicationDelta? = nil
    ) {
        self.delta = delta
        self.content = content
        self.plain = plain
        self.origin = origin
        self.sequence = sequence
    }
}

extension RoomMessage {
    /// A message as another node, or this one, sent it to all nodes.
    struct Parts {
        enum Removal {
            case all
            case one(offset: UInt64)
        }

        var content: Content
        var plain: Plain?
        /// If the sender is a member on this node.
        var origin: Origin?
        /// Of a publication that is kept.
        var position: StreamPosition?
        /// Publications to remove from the history. Members get no message then.
        var removal: Removal?

        /// - Parameters:
        ///   - payload: offset, epoch and envelope, separated by spaces; offset and epoch are 0 and empty if it is not kept.
        ///   - node: this one.
        init?(_ payload: [UInt8], node: String) {
            guard let first = payload.firstIndex(of: 0x20),
                let second = payload[(first + 1)...].firstIndex(of: 0x20),
                let offset = UInt64(String(decoding: payload[..<first], as: UTF8.self))
            else { return nil }
            self.init(Array(payload[(second + 1)...]), offset: offset, node: node)
            guard offset > 0 else { return }
            let epoch = String(decoding: payload[(first + 1)..<second], as: UTF8.self)
            self.position = StreamPosition(offset: offset, epoch: epoch)
        }

        /// - Parameter offset: of a publication that is kept, else 0.
        init?(_ bytes: [UInt8], offset: UInt64, node: String) {
            guard let envelope = try? RoomEnvelope(bytes) else { return nil }
            let plain = envelope.plain.map { Plain(kind: $0.isBinary ? .binary : .text, bytes: $0.bytes) }
            switch envelope.content {
            case .publication(var publication):
                publication.offset = offset
                if offset > 0, publication.data.isEmpty, let plain { publication.data = plain.payload }
                self.content = .publication(publication)
            case .join(let info): self.content = .join(info)
            case .leave(let info): self.content = .leave(info)
            case .historyRemoved: (self.content, self.removal) = (.interruption(StreamPosition()), .all)
            case .publicationRemoved(let offset):
                (self.content, self.removal) = (.interruption(StreamPosition()), .one(offset: offset))
            }
            self.plain = plain
            if let origin = envelope.origin, origin.node == node {
                self.origin = Origin(loop: origin.loop, member: origin.member)
            }
        }
    }
}

/// A room's message on one loop, with its encodings: each is made once, for all members on the loop that need it.
final class LoopMessage {
    let message: RoomMessage
    let cost: Int
    private let room: String
    private var json: SharedMessage?
    private var protobuf: SharedMessage?
    private var unidirectional: [SessionEncoding: SharedMessage] = [:]
    private var madePlain: SharedMessage?
    /// For members with deltas: `nil` until one of them gets the message.
    private var ofDeltas: [DeltaForm: SharedMessage]?

    private struct DeltaForm: Hashable {
        let encoding: ProtocolEncoding
        let isWhole: Bool
    }

    init(_ message: RoomMessage, room: String) {
        self.message = message
        self.cost = message.cost
        self.room = room
    }

    var isInterruption: Bool { if case .interruption = self.message.content { true } else { false } }

    /// As a push of the protocol.
    func encoded(_ encoding: SessionEncoding) -> SharedMessage {
        switch encoding {
        case .commands(.json):
            if let made = self.json { return made }
            let made = encoding.message(self.push, in: self.room)
            self.json = made
            return made
        case .commands(.protobuf):
            if let made = self.protobuf { return made }
            let made = encoding.message(self.push, in: self.room)
            self.protobuf = made
            return made
        case .lines, .events:
            if let made = self.unidirectional[encoding] { return made }
            let made = encoding.message(self.push, in: self.room)
            self.unidirectional[encoding] = made
            return made
        }
    }

    /// Of a publication that the room keeps; 0 for others.
    var offset: UInt64 {
        if case .publication(let publication) = self.message.content { publication.offset } else { 0 }
    }

    var isPublication: Bool { if case .publication = self.message.content { true } else { false } }

    /// As a push for a member with deltas.
    /// - Parameter base: sequence number of the last publication that it got; `nil` if it got none.
    func encoded(_ encoding: ProtocolEncoding, after base: UInt64?) -> SharedMessage {
        guard case .publication(let publication) = self.push else { return self.encoded(.commands(encoding)) }
        let delta = self.message.delta.flatMap { $0.base == base ? $0.content(in: encoding) : nil }
        let form = DeltaForm(encoding: encoding, isWhole: delta == nil)
        if let made = self.ofDeltas?[form] { return made }
        let push = Reply.push(channel: self.room, .publicationOfDeltas(publication, delta: delta))
        let made = SharedMessage(encoding == .json ? .text : .binary, push.encoded(encoding))
        self.ofDeltas = self.ofDeltas ?? [:]
        self.ofDeltas?[form] = made
        return made
    }

    var push: Reply.Push {
        switch self.message.content {
        case .publication(var publication):
            if publication.data.isEmpty, let plain = self.message.plain { publication.data = plain.payload }
            return .publication(publication)
        case .join(let info): return .join(info)
        case .leave(let info): return .leave(info)
        // It is not delivered as a push: the subscription ends.
        case .interruption: return .unsubscribe(.insufficient)
        }
    }

    /// For members that speak no protocol: a JSON string as its text, another value as JSON. `nil` for joins and leaves.
    var plain: SharedMessage? {
        if let made = self.madePlain { return made }
        guard case .publication(let publication) = self.message.content else { return nil }
        let plain = self.message.plain ?? Self.plain(publication.data)
        let made = SharedMessage(plain.kind, plain.bytes)
        self.madePlain = made
        return made
    }

    private static func plain(_ payload: Payload) -> RoomMessage.Plain {
        switch payload {
        case .binary(let bytes): return RoomMessage.Plain(kind: .binary, bytes: bytes)
        case .json(let bytes):
            var reader = JSONReader(bytes)
            guard reader.nextKind() == .string, let text = try? reader.readString() else {
                return RoomMessage.Plain(kind: .text, bytes: payload.content(in: .json))
            }
            return RoomMessage.Plain(kind: .text, bytes: Array(text.utf8))
        }
    }
}
