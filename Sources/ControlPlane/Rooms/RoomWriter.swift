import ControlAPI
import GatewayCore
import Rooms
import WireText

/// Writes publications and members in the form of the wire models, with their JSON as it was published.
enum RoomWriter {
    static func write(_ publication: Publication, to text: inout JSONText) {
        text.beginObject()
        text.member("offset", publication.offset > 0 ? publication.offset : nil)
        if publication.time > 0 { text.member("at", time: Int64(clamping: publication.time)) }
        switch publication.data {
        case .json:
            text.key("data")
            text.raw(publication.data.content(in: .json))
        case .binary(let bytes): text.member("b64data", Base64.encoded(bytes))
        }
        text.member("tags", Self.tags(publication.tags))
        if let info = publication.info {
            text.key("publisher")
            Self.write(info, connection: nil, node: nil, to: &text)
        }
        text.endObject()
    }

    static func tags(_ tags: [Tag]) -> [String: String] {
        Dictionary(tags.map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
    }

    /// - Parameters:
    ///   - connection: the id of the connection.
    ///   - node: the node that has it.
    static func write(_ info: ClientInfo, connection: String?, node: String?, to text: inout JSONText) {
        text.beginObject()
        text.member("client", info.client.isEmpty ? nil : info.client)
        text.member("user", info.user.isEmpty ? nil : info.user)
        text.member("connection", connection)
        text.member("node", node)
        Self.write(info.connectionInfo, as: "connectionInfo", to: &text)
        Self.write(info.channelInfo, as: "roomInfo", to: &text)
        text.endObject()
    }

    private static func write(_ payload: Payload?, as key: JSONKey, to text: inout JSONText) {
        guard let payload, !payload.isEmpty else { return }
        text.key(key)
        text.raw(payload.content(in: .json))
    }

    // MARK: Events

    /// - Returns: the event's type and data, and the position from which a reader continues after it.
    static func event(_ event: RoomFollower.Event) -> (type: String, data: [UInt8], id: String?) {
        var text = JSONText()
        var id: String?
        text.beginObject()
        let type =
            switch event {
            case .gap: "gap"
            case .publication: "publication"
            case .following: "following"
            case .joined: "joined"
            case .left: "left"
            case .tooSlow: "ended"
            }
        text.member("type", type)
        switch event {
        case .gap(let position): Self.write(position, to: &text)
        case .following(let position):
            Self.write(position, to: &text)
            id = Self.id(position)
        case .publication(let publication, let epoch):
            text.key("publication")
            Self.write(publication, to: &text)
            id = Self.id(StreamPosition(offset: publication.offset, epoch: epoch))
        case .joined(let info), .left(let info):
            text.key("member")
            Self.write(info, connection: nil, node: nil, to: &text)
        case .tooSlow: text.member("reason", "too slow")
        }
        text.endObject()
        return (type, text.bytes, id)
    }

    private static func write(_ position: StreamPosition, to text: inout JSONText) {
        guard !position.epoch.isEmpty else { return }
        text.member("offset", position.offset)
        text.member("epoch", position.epoch)
    }

    /// `EPOCH.OFFSET`; `nil` if the room keeps no history, from which a reader could continue.
    private static func id(_ position: StreamPosition) -> String? {
        position.epoch.isEmpty ? nil : "\(position.epoch).\(position.offset)"
    }

    /// Reads `EPOCH.OFFSET`.
    static func position(_ text: String) -> StreamPosition? {
        guard let mark = text.lastIndex(of: "."), let offset = UInt64(text[text.index(after: mark)...]) else {
            return nil
        }
        return StreamPosition(offset: offset, epoch: String(text[..<mark]))
    }
}
