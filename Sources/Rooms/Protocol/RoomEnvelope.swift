import WireText

/// A message of a room as nodes exchange and store it, with the member that sent it. Protobuf, so that later versions can
/// add fields.
package struct RoomEnvelope: Sendable, Hashable {
    package enum Content: Sendable, Hashable {
        /// The data of a message without a protocol is empty: it is in `plain`.
        case publication(Publication)
        case join(ClientInfo)
        case leave(ClientInfo)
        case historyRemoved
        case publicationRemoved(offset: UInt64)
    }

    /// A message of a client that speaks no protocol, as it was received.
    package struct Plain: Sendable, Hashable {
        package var isBinary: Bool
        package var bytes: [UInt8]

        package init(isBinary: Bool, bytes: [UInt8]) {
            self.isBinary = isBinary
            self.bytes = bytes
        }
    }

    /// A member of the room on a node, which does not receive the message.
    package struct Origin: Sendable, Hashable {
        package var node: String
        package var loop: Int
        package var member: UInt64

        package init(node: String, loop: Int, member: UInt64) {
            self.node = node
            self.loop = loop
            self.member = member
        }
    }

    package var content: Content
    package var plain: Plain?
    package var origin: Origin?

    package init(_ content: Content, plain: Plain? = nil, origin: Origin? = nil) {
        self.content = content
        self.plain = plain
        self.origin = origin
    }

    // MARK: Encoding

    private enum Kind: UInt64 {
        case publication = 0
        case join = 1
        case leave = 2
        case historyRemoved = 3
        case publicationRemoved = 4
    }

    package var encoded: [UInt8] {
        var writer = ProtobufFieldWriter()
        switch self.content {
        case .publication(let publication): writer.write("pub", 2) { publication.write(to: &$0) }
        case .join(let info):
            writer.write("kind", 1, Kind.join.rawValue)
            writer.write("info", 3) { info.write(to: &$0) }
        case .leave(let info):
            writer.write("kind", 1, Kind.leave.rawValue)
            writer.write("info", 3) { info.write(to: &$0) }
        case .historyRemoved: writer.write("kind", 1, Kind.historyRemoved.rawValue)
        case .publicationRemoved(let offset):
            writer.write("kind", 1, Kind.publicationRemoved.rawValue)
            writer.write("offset", 9, offset)
        }
        if let plain = self.plain {
            writer.write("plain", 4, plain.isBinary ? 2 as UInt64 : 1)
            writer.write("bytes", 5, Payload.binary(plain.bytes))
        }
        if let origin = self.origin {
            writer.write("node", 6, origin.node)
            writer.write("loop", 7, UInt64(origin.loop))
            writer.write("member", 8, origin.member)
        }
        return writer.bytes
    }

    /// Identity of a client as nodes store it for the presence of a room.
    package static func encoded(_ info: ClientInfo) -> [UInt8] {
        var writer = ProtobufFieldWriter()
        info.write(to: &writer)
        return writer.bytes
    }

    package static func info(_ bytes: [UInt8]) throws(JSONSyntaxError) -> ClientInfo {
        var fields = ProtobufFields(bytes)
        return try ClientInfo(&fields)
    }

    // MARK: Decoding

    private static let numbers: FieldNumbers = [
        1: "kind", 2: "pub", 3: "info", 4: "plain", 5: "bytes", 6: "node", 7: "loop", 8: "member", 9: "offset",
    ]

    /// - Throws: for bytes that are no envelope, or one of a kind that this version does not know.
    package init(_ bytes: [UInt8]) throws(JSONSyntaxError) {
        var kind: UInt64 = 0
        var publication = Publication(.binary([]))
        var info = ClientInfo()
        var plain: UInt64 = 0
        var content: [UInt8] = []
        var origin = Origin(node: "", loop: 0, member: 0)
        var offset: UInt64 = 0
        var fields = ProtobufFields(bytes)
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "kind": kind = try value.readUInt64()
            case "pub": publication = try Publication(&value)
            case "info": info = try ClientInfo(&value)
            case "plain": plain = try value.readUInt64()
            case "bytes": content = try value.readBytes()
            case "node": origin.node = try value.readString()
            case "loop": origin.loop = try value.readInt()
            case "member": origin.member = try value.readUInt64()
            case "offset": offset = try value.readUInt64()
            default: try value.skip()
            }
        }
        switch Kind(rawValue: kind) {
        case .publication: self.content = .publication(publication)
        case .join: self.content = .join(info)
        case .leave: self.content = .leave(info)
        case .historyRemoved: self.content = .historyRemoved
        case .publicationRemoved: self.content = .publicationRemoved(offset: offset)
        case nil: throw JSONSyntaxError(.invalid("a message of an unknown kind, \(kind)"), at: 0)
        }
        self.plain = plain == 0 ? nil : Plain(isBinary: plain == 2, bytes: content)
        self.origin = origin.node.isEmpty ? nil : origin
    }
}

extension Publication {
    private static let numbers: FieldNumbers = [4: "data", 5: "info", 6: "offset", 7: "tags", 9: "time"]
    /// Labels that one publication may have.
    private static let tagLimit = 1024

    fileprivate init(_ fields: inout ProtobufFields) throws(JSONSyntaxError) {
        var publication = Publication(.binary([]))
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "data": publication.data = try value.readPayload()
            case "info": publication.info = try ClientInfo(&value)
            case "offset": publication.offset = try value.readUInt64()
            case "tags":
                try value.readEntry { (key, entry) throws(JSONSyntaxError) in
                    guard publication.tags.count < Self.tagLimit else { return }
                    publication.tags.append(Tag(key, try entry.readString()))
                }
            case "time": publication.time = try value.readUInt64()
            default: try value.skip()
            }
        }
        self = publication
    }
}

extension ClientInfo {
    private static let numbers: FieldNumbers = [1: "user", 2: "client", 3: "conn_info", 4: "chan_info"]

    fileprivate init(_ fields: inout ProtobufFields) throws(JSONSyntaxError) {
        var info = ClientInfo()
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "user": info.user = try value.readString()
            case "client": info.client = try value.readString()
            case "conn_info": info.connectionInfo = try value.readPayload()
            case "chan_info": info.channelInfo = try value.readPayload()
            default: try value.skip()
            }
        }
        self = info
    }
}
