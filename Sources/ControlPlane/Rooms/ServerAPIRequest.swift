import Rooms
import WireText

/// Parameters of one call of the server API. Every method has some of them; others are ignored, as in Centrifugo.
struct ServerAPIRequest: Sendable {
    var channel = ""
    var channels: [String] = []
    var user = ""
    var client = ""
    var session = ""
    var data: Payload?
    var info: Payload?
    var tags: [Tag] = []
    var skipsHistory = false
    var idempotencyKey = ""
    var limit = 0
    var since: StreamPosition?
    var isReversed = false
    var pattern = ""
    var whitelist: [String] = []
    var disconnect: (code: Int, reason: String)?
    var isExpired = false
    var expiry: UInt64?
    /// A member that should be base64, and is not.
    var invalidBase64: String?

    init() {}

    /// Reads the next value of `reader`, an object.
    init(_ reader: inout JSONReader) throws(JSONSyntaxError) {
        var request = ServerAPIRequest()
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            // As in Go's decoder, null leaves a field at its default. Free content may be null, too.
            if name == "data" || !value.skipNull() { try request.read(name, &value) }
        }
        self = request
    }

    private mutating func read(_ name: MemberName, _ value: inout JSONReader) throws(JSONSyntaxError) {
        switch name {
        case "channel": self.channel = try value.readString()
        case "channels": self.channels = try Self.strings(&value)
        case "user": self.user = try value.readString()
        case "client": self.client = try value.readString()
        case "session": self.session = try value.readString()
        case "data": if self.data == nil { self.data = .json(try value.readRaw()) } else { try value.skipValue() }
        case "b64data": self.data = try self.base64(name.text, &value) ?? self.data
        case "info": if self.info == nil { self.info = .json(try value.readRaw()) } else { try value.skipValue() }
        case "b64info": self.info = try self.base64(name.text, &value) ?? self.info
        case "tags": self.tags = try Self.tags(&value)
        case "skip_history": self.skipsHistory = try value.readBool()
        case "idempotency_key": self.idempotencyKey = try value.readString()
        case "pattern": self.pattern = try value.readString()
        case "whitelist": self.whitelist = try Self.strings(&value)
        default: try self.readPosition(name, &value)
        }
    }

    private mutating func readPosition(_ name: MemberName, _ value: inout JSONReader) throws(JSONSyntaxError) {
        switch name {
        case "limit": self.limit = try value.readInt()
        case "since", "recover_since": self.since = try Self.position(&value)
        case "reverse": self.isReversed = try value.readBool()
        case "disconnect": self.disconnect = try Self.disconnect(&value)
        case "expired": self.isExpired = try value.readBool()
        case "expire_at":
            let time = try value.readInt()
            self.expiry = time > 0 ? UInt64(time) : nil
        default: try value.skipValue()
        }
    }

    private static func strings(_ value: inout JSONReader) throws(JSONSyntaxError) -> [String] {
        var texts: [String] = []
        try value.readArray { (element) throws(JSONSyntaxError) in texts.append(try element.readString()) }
        return texts
    }

    private static func tags(_ value: inout JSONReader) throws(JSONSyntaxError) -> [Tag] {
        var tags: [Tag] = []
        try value.readObject { (name, value) throws(JSONSyntaxError) in
            tags.append(Tag(name.text, try value.readString()))
        }
        return tags
    }

    /// `nil` if it is empty, or no base64.
    private mutating func base64(_ name: String, _ value: inout JSONReader) throws(JSONSyntaxError) -> Payload? {
        guard let bytes = Base64.decoded(try value.readString().utf8) else {
            self.invalidBase64 = name
            return nil
        }
        return bytes.isEmpty ? nil : Payload(detecting: bytes)
    }

    private static func position(_ value: inout JSONReader) throws(JSONSyntaxError) -> StreamPosition {
        var position = StreamPosition()
        try value.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "offset": position.offset = try value.readUInt64()
            case "epoch": position.epoch = StreamPosition.epoch(try value.readString())
            default: try value.skipValue()
            }
        }
        return position
    }

    private static func disconnect(_ value: inout JSONReader) throws(JSONSyntaxError) -> (code: Int, reason: String) {
        var disconnect = (code: 0, reason: "")
        try value.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "code": disconnect.code = try value.readInt()
            case "reason": disconnect.reason = try value.readString()
            default: try value.skipValue()
            }
        }
        return disconnect
    }
}
