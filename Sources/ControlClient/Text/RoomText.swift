import CommandLineText
import ControlAPI
import WireText

/// Table of rooms.
package struct RoomTable {
    package private(set) var table = TextTable([
        TextTable.Column("ROOM", minimumWidth: 12), TextTable.Column("MEMBERS", rightAligned: true),
        TextTable.Column("USERS", rightAligned: true, dropOrder: 3),
        TextTable.Column("KEPT", rightAligned: true, dropOrder: 2),
        TextTable.Column("SIZE", rightAligned: true, dropOrder: 4),
        TextTable.Column("OFFSET", rightAligned: true, dropOrder: 1), TextTable.Column("POLICY", dropOrder: 5),
    ])

    package init(_ rooms: [Room]) {
        for room in rooms {
            self.table.add([
                TextTable.Cell(room.name), TextTable.Cell("\(room.members)"), TextTable.Cell("\(room.users)"),
                TextTable.Cell("\(room.publications)"), TextTable.Cell(QuantityText.bytes(room.historyBytes)),
                TextTable.Cell(room.offset.map { "\($0)" }), TextTable.Cell(room.policy),
            ])
        }
    }
}

/// Table of a room's members.
package struct RoomMemberTable {
    package private(set) var table = TextTable([
        TextTable.Column("USER", minimumWidth: 8), TextTable.Column("CLIENT", minimumWidth: 12),
        TextTable.Column("CONNECTION", dropOrder: 1),
    ])

    package init(_ members: [RoomMember]) {
        for member in members {
            self.table.add([
                TextTable.Cell(member.user), TextTable.Cell(member.client), TextTable.Cell(member.connection),
            ])
        }
    }
}

/// Table of users.
package struct UserTable {
    package private(set) var table = TextTable([
        TextTable.Column("USER", minimumWidth: 8), TextTable.Column("CONNECTIONS", rightAligned: true),
        TextTable.Column("NODES", minimumWidth: 5, dropOrder: 2),
        TextTable.Column("ROOMS", minimumWidth: 12, dropOrder: 1),
    ])

    package init(_ users: [UserSummary]) {
        for user in users {
            let rooms = (user.rooms ?? []).joined(separator: ", ")
            self.table.add([
                TextTable.Cell(user.id), TextTable.Cell(user.connectionCount.map { "\($0)" }),
                TextTable.Cell(user.nodes?.joined(separator: ", ")),
                TextTable.Cell(user.hasMoreRooms == true ? "\(rooms) and more" : rooms),
            ])
        }
    }
}

/// Properties of a room or a user, one per line. The results are sanitized.
package enum RoomDetails {
    private static let width = 14

    package static func lines(_ room: Room) -> [String] {
        Self.lines([
            ("room", room.name), ("policy", room.policy), ("members", "\(room.members)"),
            ("presence", "\(room.clients) clients, \(room.users) users"),
            (
                "history",
                room.epoch == nil
                    ? nil : "\(room.publications) publications, \(QuantityText.bytes(room.historyBytes))"
            ), ("offset", room.offset.map { "\($0)" }), ("epoch", room.epoch),
            ("nodes", room.nodes?.map { "\($0.members) on \($0.node)" }.joined(separator: ", ")),
        ])
    }

    package static func lines(_ user: User) -> [String] {
        let connections = user.connections.map { one in
            let more = max(0, one.roomCount) - one.rooms.count
            let rooms = one.rooms.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
            return ("connection", "\(one.connection), client \(one.client), in \(rooms.isEmpty ? "no room" : rooms)")
        }
        let more = max(0, user.connectionCount) - user.connections.count
        let rest: [(String, String?)] = more > 0 ? [("", "and \(more) more connections")] : []
        return Self.lines(
            [("user", user.id)] + connections + rest + user.restrictions.map { ($0.kind, Self.words($0)) })
    }

    package static func lines(_ restrictions: RestrictionList) -> [String] {
        Self.lines(restrictions.items.map { ($0.kind, "\($0.user) \(Self.words($0))") })
    }

    private static func words(_ restriction: Restriction) -> String {
        let place = restriction.room.map { "in \($0)" } ?? "in every room"
        return "\(place) for \(QuantityText.duration(milliseconds: restriction.remainingMs))"
    }

    private static func lines(_ pairs: [(name: String, value: String?)]) -> [String] {
        pairs.compactMap { name, value in
            value.map { CellText.fit(name, cells: Self.width) + TerminalText.singleLine($0, limit: 2000) }
        }
    }
}

/// A publication as the REST interface writes it, with the text of its JSON.
package struct PublicationRecord: Sendable {
    /// Nesting that is accepted of a document with publications, whose data may nest as deeply as that of clients.
    package static let maximumDepth = JSONReader.usualDepth + 4

    package private(set) var offset: UInt64?
    private var at = ""
    private var data: [UInt8] = []
    private var publisher = ""

    private init() {}

    /// Reads the next value of `reader`, a `RoomPublication`.
    package init(_ reader: inout JSONReader) throws(JSONSyntaxError) {
        var record = PublicationRecord()
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "offset": record.offset = try value.readUInt64()
            case "at": record.at = try value.readString()
            case "data": record.data = try value.readRaw()
            case "b64data": record.data = Array("base64 \(try value.readString())".utf8)
            case "publisher": record.publisher = try Self.publisher(&value)
            default: try value.skipValue()
            }
        }
        self = record
    }

    /// The user, or the client of an anonymous one.
    private static func publisher(_ reader: inout JSONReader) throws(JSONSyntaxError) -> String {
        var (user, client) = ("", "")
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "user": user = try value.readString()
            case "client": client = try value.readString()
            default: try value.skipValue()
            }
        }
        return user.isEmpty ? client : user
    }

    /// The publications of a `RoomHistoryPage`, and the path of the next page.
    package static func page(_ body: [UInt8]) throws(JSONSyntaxError) -> (records: [PublicationRecord], next: String?) {
        var records: [PublicationRecord] = []
        var next: String?
        var reader = JSONReader(body, maximumDepth: Self.maximumDepth)
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "items":
                try value.readArray { (element) throws(JSONSyntaxError) in
                    records.append(try PublicationRecord(&element))
                }
            case "next": next = try value.readString()
            default: try value.skipValue()
            }
        }
        return (records, next)
    }

    /// Time, offset, publisher and data. Sanitized.
    package var line: String {
        let time = self.at.split(separator: "T").last.map { $0.prefix { $0 != "Z" } } ?? ""
        let words = [
            CellText.fit(TerminalText.singleLine(String(time)), cells: 12), self.offset.map { "\($0)" } ?? "-",
            self.publisher.isEmpty ? "-" : TerminalText.singleLine(self.publisher),
            // Its white space stays: it may be part of strings. Line breaks in them are escaped.
            TerminalText.sanitized(String(decoding: self.data, as: UTF8.self)),
        ]
        return words.joined(separator: "  ")
    }
}
