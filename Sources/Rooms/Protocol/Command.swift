import ByteKernels
import WireText

/// One command of a client (Centrifuge's client protocol, version 2).
package struct Command: Sendable, Hashable {
    /// Repeated in the reply; 0 for a command that is not answered.
    package var number: UInt32 = 0
    package var request: Request

    package init(number: UInt32, _ request: Request) {
        self.number = number
        self.request = request
    }

    /// The answer to a ping.
    static let pong = Command(number: 0, .pong)

    package enum Request: Sendable, Hashable {
        case connect(ConnectRequest)
        case subscribe(SubscribeRequest)
        case unsubscribe(channel: String)
        /// Without data the payload is empty.
        case publish(channel: String, Payload)
        case presence(channel: String)
        case presenceStats(channel: String)
        case history(HistoryRequest)
        case ping
        case send
        case rpc
        /// A subscription or publication of another kind than streams have, such as of a map.
        case unsupported
        case refresh(token: String)
        case subscriptionRefresh(channel: String, token: String)
        /// An empty command: the answer to a ping of the server. With a number, it is a command that is not known.
        case pong
    }

    package struct ConnectRequest: Sendable, Hashable {
        package var token = ""
        package var data: Payload?
        package var name = ""
        package var version = ""
        /// Subscriptions made together with the connection, by channel.
        package var subscriptions: [SubscribeRequest] = []
        /// Of a client that only receives and comes back: what it has got, by room. They replace the positions in
        /// `subscriptions`, and add no room.
        package var received: [String: StreamPosition] = [:]

        package init() {}
    }

    package struct SubscribeRequest: Sendable, Hashable {
        package var channel = ""
        package var token = ""
        /// The client has received everything up to `position`, and asks for what it missed.
        package var recovers = false
        package var position = StreamPosition()
        package var wantsPosition = false
        /// Publications are wanted as differences to the one before, in Fossil's format.
        package var wantsDeltas = false
        /// They are wanted as differences in another format, which breaks the protocol.
        package var wantsUnknownDeltas = false
        /// Publications are wanted if their tags match; `nil` wants all.
        package var filter: TagFilter.Node?
        /// Where something that it missed is lost, the client is refused instead of entering.
        package var rejectsLoss = false
        /// 0 is a stream of publications; others are not supported.
        package var kind = 0

        package init() {}

        package init(channel: String) {
            self.channel = channel
        }
    }

    package struct HistoryRequest: Sendable, Hashable {
        package var channel = ""
        /// Publications returned: 0 for the position alone, below 0 for all.
        package var limit = 0
        /// `nil` begins with the oldest, or the newest if reversed.
        package var since: StreamPosition?
        package var isReversed = false

        package init() {}
    }
}

/// A place in the stream of a room's publications.
package struct StreamPosition: Sendable, Hashable {
    /// Number of the last publication, from 1 on; 0 before the first.
    package var offset: UInt64 = 0
    /// Changes when a new stream begins.
    package var epoch = ""

    package init(offset: UInt64 = 0, epoch: String = "") {
        self.offset = offset
        self.epoch = epoch
    }

    /// Longest text that can be an epoch, in bytes.
    private static let epochLimit = 64

    /// An epoch as a client sends it. A text that is none, because it is too long, becomes one that no stream has.
    package static func epoch(_ text: String) -> String { text.utf8.count <= Self.epochLimit ? text : "-" }
}

/// The encoding of one connection.
package enum ProtocolEncoding: Sendable, Hashable, CaseIterable {
    /// One object a line.
    case json
    /// Messages of proto3, each after its length.
    case protobuf
}

/// Splits what a client sends into commands. Several may come in one message.
package struct CommandReader: Sendable {
    private let bytes: [UInt8]
    private let encoding: ProtocolEncoding
    private var offset = 0

    /// - Parameter message: for JSON, bytes of valid UTF-8.
    package init(_ message: [UInt8], encoding: ProtocolEncoding) {
        self.bytes = message
        self.encoding = encoding
    }

    /// The next command; `nil` at the end. An empty message has none.
    /// - Throws: for bytes that are no command; nothing can be read after them.
    package mutating func next() throws(JSONSyntaxError) -> Command? {
        switch self.encoding {
        case .json: try self.nextLine()
        case .protobuf: try self.nextMessage()
        }
    }

    private mutating func nextLine() throws(JSONSyntaxError) -> Command? {
        while self.offset < self.bytes.count {
            let rest = self.bytes[self.offset...]
            let end = rest.firstIndex(of: 0x0A) ?? self.bytes.count
            let line = self.offset..<end
            self.offset = min(end + 1, self.bytes.count)
            if self.bytes[line].allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { continue }
            var fields = JSONFields(JSONReader(self.bytes, in: line))
            let command = try Command(&fields)
            var reader = fields.reader
            try reader.finish()
            return command
        }
        return nil
    }

    private mutating func nextMessage() throws(JSONSyntaxError) -> Command? {
        guard self.offset < self.bytes.count else { return nil }
        var lengths = ProtobufFields(self.bytes, in: self.offset..<self.bytes.count)
        let range = try lengths.readLength()
        self.offset = range.upperBound
        var fields = ProtobufFields(self.bytes, in: range)
        return try Command(&fields)
    }
}

// MARK: Decoding

extension Command {
    private static let numbers: FieldNumbers = [
        1: "id", 4: "connect", 5: "subscribe", 6: "unsubscribe", 7: "publish", 8: "presence", 9: "presence_stats",
        10: "history", 11: "ping", 12: "send", 13: "rpc", 14: "refresh", 15: "sub_refresh",
    ]

    /// Of several requests in one command the first is taken.
    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var number: UInt64 = 0
        var request: Request?
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "id": number = try value.readUInt64()
            case _ where request != nil: try value.skip()
            case "connect": request = .connect(try ConnectRequest(&value))
            case "subscribe":
                let subscription = try SubscribeRequest(&value)
                request = subscription.kind == 0 ? .subscribe(subscription) : .unsupported
            case "unsubscribe": request = .unsubscribe(channel: try ChannelFields(&value).channel)
            case "publish": request = try ChannelFields(&value).publication
            case "presence": request = .presence(channel: try ChannelFields(&value).channel)
            case "presence_stats": request = .presenceStats(channel: try ChannelFields(&value).channel)
            case "history": request = .history(try HistoryRequest(&value))
            case "refresh": request = .refresh(token: try RefreshFields(&value).token)
            case "sub_refresh":
                let fields = try ChannelFields(&value)
                request = .subscriptionRefresh(channel: fields.channel, token: fields.token)
            case "ping":
                try value.skip()
                request = .ping
            case "send":
                try value.skip()
                request = .send
            case "rpc":
                try value.skip()
                request = .rpc
            default: try value.skip()
            }
        }
        guard let number = UInt32(exactly: number) else {
            throw JSONSyntaxError(.invalid("a command's id above \(UInt32.max)"), at: 0)
        }
        self.number = number
        self.request = request ?? .pong
    }
}

/// Fields of the requests that name a channel and little else.
private struct ChannelFields {
    private static let numbers: FieldNumbers = [1: "channel", 2: "data", 3: "type"]
    var channel = ""
    var token = ""
    /// Of a publication: 0 is for a stream.
    var kind = 0
    var data: Payload?

    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var (channel, token, kind) = ("", "", 0)
        var data: Payload?
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "channel": channel = try value.readString()
            case "token": token = try value.readString()
            case "data": data = try value.readPayload()
            case "type": kind = try value.readInt()
            default: try value.skip()
            }
        }
        (self.channel, self.token, self.kind, self.data) = (channel, token, kind, data)
        // Field 2 is the token in Protobuf's SubRefreshRequest, and the data in its PublishRequest.
        if token.isEmpty, let data { self.token = String(decoding: data.bytes, as: UTF8.self) }
    }

    var publication: Command.Request {
        self.kind == 0 ? .publish(channel: self.channel, self.data ?? .binary([])) : .unsupported
    }
}

private struct RefreshFields {
    var token = ""

    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var token = ""
        try fields.readMessage([1: "token"]) { (name, value) throws(JSONSyntaxError) in
            if name == "token" { token = try value.readString() } else { try value.skip() }
        }
        self.token = token
    }
}

extension Command.ConnectRequest {
    private static let numbers: FieldNumbers = [1: "token", 2: "data", 3: "subs", 4: "name", 5: "version"]
    /// Subscriptions that one command may bring; the connection's own limit is usually lower.
    private static let subscriptionLimit = 4096

    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var request = Self()
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "token": request.token = try value.readString()
            case "data": request.data = try value.readPayload()
            case "name": request.name = try value.readString()
            case "version": request.version = try value.readString()
            case "subs":
                try value.readEntry { (channel, entry) throws(JSONSyntaxError) in
                    guard request.subscriptions.count < Self.subscriptionLimit else {
                        throw JSONSyntaxError(.invalid("more than \(Self.subscriptionLimit) subscriptions"), at: 0)
                    }
                    var subscription = try Command.SubscribeRequest(&entry)
                    subscription.channel = channel
                    request.subscriptions.append(subscription)
                }
            default: try value.skip()
            }
        }
        self = request
    }
}

extension Command.SubscribeRequest {
    private static let numbers: FieldNumbers = [
        1: "channel", 2: "token", 3: "recover", 6: "epoch", 7: "offset", 9: "positioned", 12: "delta", 13: "tf",
        14: "flag", 15: "type",
    ]
    /// Bit of `flag`; the others offer what is not supported.
    private static let rejectsLossFlag = 2

    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var request = Self()
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "channel": request.channel = try value.readString()
            case "token": request.token = try value.readString()
            case "recover": request.recovers = try value.readBool()
            case "epoch": request.position.epoch = StreamPosition.epoch(try value.readString())
            case "offset": request.position.offset = try value.readUInt64()
            case "positioned": request.wantsPosition = try value.readBool()
            case "delta":
                let format = try value.readString()
                request.wantsDeltas = format == RoomPolicy.Deltas.fossil.rawValue
                request.wantsUnknownDeltas = !request.wantsDeltas && !format.isEmpty
            case "tf": request.filter = try TagFilter.Node(&value)
            case "type": request.kind = try value.readInt()
            case "flag": request.rejectsLoss = try value.readInt() & Self.rejectsLossFlag != 0
            default: try value.skip()
            }
        }
        self = request
    }
}

extension Command.HistoryRequest {
    private static let numbers: FieldNumbers = [1: "channel", 7: "limit", 8: "since", 9: "reverse"]

    init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
        var request = Self()
        try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "channel": request.channel = try value.readString()
            case "limit": request.limit = try value.readInt()
            case "reverse": request.isReversed = try value.readBool()
            case "since":
                var position = StreamPosition()
                try value.readMessage([1: "offset", 2: "epoch"]) { (name, value) throws(JSONSyntaxError) in
                    switch name {
                    case "offset": position.offset = try value.readUInt64()
                    case "epoch": position.epoch = StreamPosition.epoch(try value.readString())
                    default: try value.skip()
                    }
                }
                request.since = position
            default: try value.skip()
            }
        }
        self = request
    }
}

/// The JSON with which a client begins that only receives, or that publishes one message: a `connect` request, perhaps
/// with `publish`.
package struct UnidirectionalRequest: Sendable, Hashable {
    package struct Publication: Sendable, Hashable {
        package let channel: String
        package let data: Payload
    }

    package var connect = Command.ConnectRequest()
    package var publication: Publication?

    /// - Parameter json: without any, an anonymous request for nothing.
    package init(_ json: [UInt8]) throws(JSONSyntaxError) {
        guard !json.isEmpty else { return }
        guard json.isValidUTF8 else { throw JSONSyntaxError(.invalid("text that is not UTF-8"), at: 0) }
        var fields = JSONFields(JSONReader(json))
        self.connect = try Command.ConnectRequest(&fields)
        var reader = fields.reader
        try reader.finish()
        var publication: Publication?
        var again = JSONFields(JSONReader(json))
        try again.readMessage([:]) { (name, value) throws(JSONSyntaxError) in
            guard name == "publish" else { return try value.skip() }
            let offset = value.reader.offset
            let channel = try ChannelFields(&value)
            guard !channel.channel.isEmpty else {
                throw JSONSyntaxError(.invalid("a publication without a channel"), at: offset)
            }
            publication = Publication(channel: channel.channel, data: channel.data ?? .json(Array("null".utf8)))
        }
        self.publication = publication
    }
}
