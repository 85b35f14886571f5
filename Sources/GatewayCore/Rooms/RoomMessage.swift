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
    private static let overhead = 512

    let content: Content
    /// `nil` if a client of the protocol, or the server, published it.
    let plain: Plain?
    /// The member to which it is not delivered: the one that sent it without a protocol.
    let origin: Origin?
    /// Number in the room, from 1 on, of messages of all kinds. Unlike an offset it is not shown.
    let sequence: UInt64

    /// In limits, in bytes, so that one limit bounds both large and empty messages.
    var cost: Int {
        let size =
            switch self.content {
            case .publication(let publication): max(publication.data.bytes.count, self.plain?.bytes.count ?? 0)
            case .join, .leave: 64
            }
        return size + Self.overhead
    }

    init(_ content: Content, plain: Plain? = nil, origin: Origin? = nil, sequence: UInt64) {
        self.content = content
        self.plain = plain
        self.origin = origin
        self.sequence = sequence
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

    init(_ message: RoomMessage, room: String) {
        self.message = message
        self.cost = message.cost
        self.room = room
    }

    /// As a push of the protocol.
    func encoded(_ encoding: SessionEncoding) -> SharedMessage {
        switch encoding {
        case .commands(.json):
            if let made = self.json { return made }
            let made = SharedMessage(.text, Reply.push(channel: self.room, self.push).encoded(.json))
            self.json = made
            return made
        case .commands(.protobuf):
            if let made = self.protobuf { return made }
            let made = SharedMessage(.binary, Reply.push(channel: self.room, self.push).encoded(.protobuf))
            self.protobuf = made
            return made
        case .lines, .events:
            if let made = self.unidirectional[encoding] { return made }
            let made = SharedMessage(.text, encoding.framed(Reply.unidirectional(self.push, channel: self.room)))
            self.unidirectional[encoding] = made
            return made
        }
    }

    var push: Reply.Push {
        switch self.message.content {
        case .publication(var publication):
            if publication.data.isEmpty, let plain = self.message.plain { publication.data = plain.payload }
            return .publication(publication)
        case .join(let info): return .join(info)
        case .leave(let info): return .leave(info)
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
                return RoomMessage.Plain(kind: .text, bytes: bytes)
            }
            return RoomMessage.Plain(kind: .text, bytes: Array(text.utf8))
        }
    }
}
