import WireText

/// Identity of a connection, as other clients see it.
package struct ClientInfo: Sendable, Hashable {
    /// Empty for an anonymous user.
    package var user = ""
    /// Identifies the connection.
    package var client = ""
    /// From the connection's token.
    package var connectionInfo: Payload?
    /// From the subscription's token.
    package var channelInfo: Payload?

    package init(user: String = "", client: String = "", connectionInfo: Payload? = nil, channelInfo: Payload? = nil) {
        self.user = user
        self.client = client
        self.connectionInfo = connectionInfo
        self.channelInfo = channelInfo
    }

    /// Bytes that it takes in a list of clients, roughly.
    package var estimatedSize: Int {
        let shown = [self.connectionInfo, self.channelInfo].reduce(0) { $0 + ($1?.bytes.count ?? 0) }
        return 64 + self.user.utf8.count + self.client.utf8.count + shown
    }
}

/// A message published in a room.
package struct Publication: Sendable, Hashable {
    package var data: Payload
    /// The client that published it; `nil` if the server did.
    package var info: ClientInfo?
    /// Its number in the room's stream; 0 if the room keeps no history, or this is not part of it.
    package var offset: UInt64 = 0
    package var tags: [Tag] = []
    /// Milliseconds since 1970, when it was published; 0 if unknown.
    package var time: UInt64 = 0

    package init(_ data: Payload, info: ClientInfo? = nil, tags: [Tag] = []) {
        self.data = data
        self.info = info
        self.tags = tags
    }

    /// Bytes that it takes in a reply, roughly.
    var estimatedSize: Int {
        let shown = [self.info?.connectionInfo, self.info?.channelInfo].reduce(0) { $0 + ($1?.bytes.count ?? 0) }
        return 256 + self.data.bytes.count + shown
    }
}

/// A message of the server: the answer to a command, or a push.
package enum Reply: Sendable, Hashable {
    /// An empty reply; the client answers it with an empty command.
    case ping
    case error(number: UInt32, CommandError)
    case connect(number: UInt32, ConnectResult)
    case subscribe(number: UInt32, SubscribeResult)
    /// Answers of commands that have none but their success.
    case unsubscribe(number: UInt32)
    case publish(number: UInt32)
    /// The answer to a ping of the client.
    case pong(number: UInt32)
    case presence(number: UInt32, [ClientInfo])
    case presenceStats(number: UInt32, clients: Int, users: Int)
    case history(number: UInt32, [Publication], StreamPosition)
    case refresh(number: UInt32, client: String, version: String, Expiry)
    case subscriptionRefresh(number: UInt32, Expiry)
    case push(channel: String, Push)

    package enum Push: Sendable, Hashable {
        case publication(Publication)
        /// The same for a subscription with deltas. `delta` is the difference to the content of the publication before,
        /// in the encoding of the reply; without one the publication is whole.
        case publicationOfDeltas(Publication, delta: [UInt8]?)
        case join(ClientInfo)
        case leave(ClientInfo)
        case unsubscribe(UnsubscribeCode)
        case subscribe(SubscribeResult)
        case message(Payload)
        /// Begins a connection of a client that sends nothing.
        case connect(ConnectResult)
        case disconnect(Disconnect)
        case refresh(Expiry)
    }

    /// Whether a token must be renewed.
    package struct Expiry: Sendable, Hashable {
        /// Seconds until then; `nil` if it does not expire.
        package var timeToLive: UInt32?

        package init(_ timeToLive: UInt32? = nil) {
            self.timeToLive = timeToLive
        }
    }

    package struct ConnectResult: Sendable, Hashable {
        package var client = ""
        package var version = ""
        package var expiry = Expiry()
        package var data: Payload?
        /// Server-side subscriptions, by channel.
        package var subscriptions: [(key: String, value: SubscribeResult)] = []
        /// Seconds between pings of the server; 0 if there are none.
        package var pingInterval: UInt32 = 0
        /// Pings must be answered.
        package var expectsPong = false
        package var session = ""
        package var node = ""

        package init() {}

        package static func == (left: Self, right: Self) -> Bool {
            left.client == right.client && left.version == right.version && left.expiry == right.expiry
                && left.data == right.data && left.pingInterval == right.pingInterval
                && left.expectsPong == right.expectsPong && left.session == right.session && left.node == right.node
                && left.subscriptions.elementsEqual(right.subscriptions) { $0 == $1 }
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(self.client)
            hasher.combine(self.subscriptions.count)
        }
    }

    package struct SubscribeResult: Sendable, Hashable {
        package var expiry = Expiry()
        /// The client may recover what it misses.
        package var isRecoverable = false
        /// Publications have offsets, and a gap ends the subscription.
        package var isPositioned = false
        package var position = StreamPosition()
        /// Publications after the position that the client asked for, oldest first.
        package var publications: [Publication] = []
        /// All publications since the client's position are in `publications`.
        package var isRecovered = false
        /// The client asked for recovery.
        package var wasRecovering = false
        package var data: Payload?
        /// Publications are sent as differences to the one before, where that is shorter.
        package var usesDeltas = false

        package init() {}
    }
}

extension Reply {
    /// Appends the encoded reply, with the delimiter that several in one message need. Push replies for one room are
    /// encoded once for all its members.
    package func append(to message: inout [UInt8], encoding: ProtocolEncoding) {
        switch encoding {
        case .json:
            if !message.isEmpty { message.append(0x0A) }
            var writer = JSONFieldWriter(appendingTo: message)
            message = []
            self.write(to: &writer)
            message = writer.finish()
        case .protobuf:
            var writer = ProtobufFieldWriter()
            self.write(to: &writer)
            message.append(varint: UInt64(writer.bytes.count))
            message.append(contentsOf: writer.bytes)
        }
    }

    package func encoded(_ encoding: ProtocolEncoding) -> [UInt8] {
        var message: [UInt8] = []
        self.append(to: &message, encoding: encoding)
        return message
    }

    /// The push alone in JSON, without the reply around it, for clients that only receive.
    package static func unidirectional(_ push: Push, channel: String) -> [UInt8] {
        var writer = JSONFieldWriter()
        push.write(channel, to: &writer)
        return writer.finish()
    }

    /// As a client gets it that only receives: a push without the reply around it; `nil` for answers to its commands.
    package var unidirectional: [UInt8]? {
        switch self {
        case .ping: Array("{}".utf8)
        case .connect(_, let result): Self.unidirectional(.connect(result), channel: "")
        case .push(let channel, let push): Self.unidirectional(push, channel: channel)
        case .error, .subscribe, .unsubscribe, .publish, .pong, .presence, .presenceStats, .history, .refresh,
            .subscriptionRefresh:
            nil
        }
    }

    private func write(to writer: inout some FieldWriter) {
        if let number = self.number { writer.write("id", 1, UInt64(number)) }
        switch self {
        case .ping: break
        case .error(_, let error): writer.write("error", 2) { error.write(to: &$0) }
        case .push(let channel, let push): writer.write("push", 4) { push.write(channel, to: &$0) }
        case .connect(_, let result): writer.write("connect", 5) { result.write(to: &$0) }
        case .subscribe(_, let result): writer.write("subscribe", 6) { result.write(to: &$0) }
        case .unsubscribe: writer.write("unsubscribe", 7) { _ in }
        case .publish: writer.write("publish", 8) { _ in }
        case .pong: writer.write("ping", 12) { _ in }
        case .refresh(_, let client, let version, let expiry):
            writer.write("refresh", 14) {
                $0.write("client", 1, client)
                $0.write("version", 2, version)
                expiry.write(3, 4, to: &$0)
            }
        case .subscriptionRefresh(_, let expiry): writer.write("sub_refresh", 15) { expiry.write(1, 2, to: &$0) }
        case .presence, .presenceStats, .history: self.writeReading(to: &writer)
        }
    }

    /// Answers with what a room has.
    private func writeReading(to writer: inout some FieldWriter) {
        switch self {
        case .presence(_, let clients):
            writer.write("presence", 9) {
                $0.write("presence", 1, map: clients.map { ($0.client, $0) }, inJSON: .always) { $0.write(to: &$1) }
            }
        case .presenceStats(_, let clients, let users):
            writer.write("presence_stats", 10) {
                $0.write("num_clients", 1, UInt64(clients), inJSON: .always)
                $0.write("num_users", 2, UInt64(users), inJSON: .always)
            }
        case .history(_, let publications, let position):
            writer.write("history", 11) {
                $0.write("publications", 1, list: publications, inJSON: .always) { $0.write(to: &$1) }
                $0.write("epoch", 2, position.epoch, inJSON: .always)
                $0.write("offset", 3, position.offset, inJSON: .always)
            }
        case .ping, .error, .push, .connect, .subscribe, .unsubscribe, .publish, .pong, .refresh, .subscriptionRefresh:
            break
        }
    }

    /// Of the command that it answers; `nil` for a push.
    private var number: UInt32? {
        switch self {
        case .ping, .push: nil
        case .error(let number, _), .connect(let number, _), .subscribe(let number, _), .unsubscribe(let number),
            .publish(let number), .pong(let number), .presence(let number, _), .presenceStats(let number, _, _),
            .history(let number, _, _), .refresh(let number, _, _, _), .subscriptionRefresh(let number, _):
            number
        }
    }
}

extension Reply.Push {
    fileprivate func write<Writer: FieldWriter>(_ channel: String, to writer: inout Writer) {
        writer.write("channel", 2, channel)
        switch self {
        case .publication(let publication): writer.write("pub", 4) { publication.write(to: &$0) }
        case .publicationOfDeltas(let publication, let delta):
            writer.write("pub", 4) { publication.write(delta: delta, to: &$0) }
        case .join(let info): writer.write("join", 5) { $0.write("info", 1) { info.write(to: &$0) } }
        case .leave(let info): writer.write("leave", 6) { $0.write("info", 1) { info.write(to: &$0) } }
        case .unsubscribe(let code):
            writer.write("unsubscribe", 7) {
                $0.write("code", 2, UInt64(code.code))
                $0.write("reason", 3, code.reason)
            }
        case .message(let data): writer.write("message", 8) { $0.write("data", 1, data) }
        case .subscribe(let result):
            writer.write("subscribe", 9) {
                $0.write("recoverable", 1, result.isRecoverable)
                $0.write("epoch", 4, result.position.epoch)
                $0.write("offset", 5, result.position.offset)
                $0.write("positioned", 6, result.isPositioned)
                $0.write("data", 7, result.data)
            }
        case .connect(let result): writer.write("connect", 10) { result.write(expiryAt: 5, to: &$0) }
        case .disconnect(let disconnect):
            writer.write("disconnect", 11) {
                $0.write("code", 1, UInt64(disconnect.code))
                $0.write("reason", 2, disconnect.reason)
                $0.write("reconnect", 3, disconnect.isTemporary)
            }
        case .refresh(let expiry): writer.write("refresh", 12) { expiry.write(1, 2, to: &$0) }
        }
    }
}

extension Reply.ConnectResult {
    fileprivate func write(to writer: inout some FieldWriter) {
        writer.write("client", 1, self.client)
        writer.write("version", 2, self.version)
        self.expiry.write(3, 4, to: &writer)
        writer.write("data", 5, self.data)
        writer.write("subs", 6, map: self.subscriptions) { $0.write(to: &$1) }
        writer.write("ping", 7, UInt64(self.pingInterval))
        writer.write("pong", 8, self.expectsPong)
        writer.write("session", 9, self.session)
        writer.write("node", 10, self.node)
    }

    /// As a push, which has other numbers than the result.
    fileprivate func write(expiryAt number: UInt64, to writer: inout some FieldWriter) {
        writer.write("client", 1, self.client)
        writer.write("version", 2, self.version)
        writer.write("data", 3, self.data)
        writer.write("subs", 4, map: self.subscriptions) { $0.write(to: &$1) }
        self.expiry.write(number, number + 1, to: &writer)
        writer.write("ping", 7, UInt64(self.pingInterval))
        writer.write("pong", 8, self.expectsPong)
        writer.write("session", 9, self.session)
        writer.write("node", 10, self.node)
    }
}

extension Reply.SubscribeResult {
    fileprivate func write(to writer: inout some FieldWriter) {
        self.expiry.write(1, 2, to: &writer)
        writer.write("recoverable", 3, self.isRecoverable)
        writer.write("epoch", 6, self.position.epoch)
        if self.usesDeltas {
            var deltas = DeltaSeries()
            writer.write("publications", 7, list: self.publications) { publication, writer in
                publication.write(delta: deltas.next(publication.data, writer), to: &writer)
            }
        } else {
            writer.write("publications", 7, list: self.publications) { $0.write(to: &$1) }
        }
        writer.write("recovered", 8, self.isRecovered)
        writer.write("offset", 9, self.position.offset)
        writer.write("positioned", 10, self.isPositioned)
        writer.write("data", 11, self.data)
        writer.write("was_recovering", 12, self.wasRecovering)
        writer.write("delta", 13, self.usesDeltas)
    }
}

extension Reply.Expiry {
    fileprivate func write(_ flag: UInt64, _ seconds: UInt64, to writer: inout some FieldWriter) {
        guard let timeToLive = self.timeToLive else { return }
        writer.write("expires", flag, true)
        writer.write("ttl", seconds, UInt64(timeToLive))
    }
}

/// The differences of publications that a client gets together.
private struct DeltaSeries {
    /// Bytes of publications after which the others are sent whole: the client may come back as often as it likes.
    private static let sizeLimit = 1 << 20

    private var previous: Payload?
    private var size = 0

    /// - Returns: the difference to the content before; `nil` for the first, and where it is not shorter.
    mutating func next<Writer: FieldWriter>(_ payload: Payload, _: Writer) -> [UInt8]? {
        defer { self.previous = payload }
        self.size += payload.bytes.count
        guard let previous = self.previous, self.size <= Self.sizeLimit else { return nil }
        return payload.delta(to: previous, in: Writer.encoding)
    }
}

extension Payload {
    /// The difference between the contents of two publications, as Fossil writes it; `nil` if it is not shorter.
    package func delta(to previous: Payload, in encoding: ProtocolEncoding) -> [UInt8]? {
        let isText =
            switch (self, previous) {
            case (.json, .json): true
            case (.binary, _), (_, .binary): encoding == .json
            }
        return FossilDelta.make(
            from: previous.content(in: encoding), to: self.content(in: encoding), keepsCharacters: isText)
    }
}

extension Publication {
    func write(to writer: inout some FieldWriter) {
        writer.write("data", 4, self.data)
        self.writeFacts(isDelta: false, to: &writer)
    }

    /// - Parameter delta: instead of the data; `nil` for the data, in JSON as a string.
    func write<Writer: FieldWriter>(delta: [UInt8]?, to writer: inout Writer) {
        writer.write("data", 4, content: delta ?? self.data.content(in: Writer.encoding))
        self.writeFacts(isDelta: delta != nil, to: &writer)
    }

    private func writeFacts(isDelta: Bool, to writer: inout some FieldWriter) {
        if let info = self.info { writer.write("info", 5) { info.write(to: &$0) } }
        writer.write("offset", 6, self.offset)
        writer.write("tags", 7, tags: self.tags)
        writer.write("delta", 8, isDelta)
        writer.write("time", 9, self.time)
    }
}

extension ClientInfo {
    func write(to writer: inout some FieldWriter) {
        writer.write("user", 1, self.user, inJSON: .always)
        writer.write("client", 2, self.client, inJSON: .always)
        writer.write("conn_info", 3, self.connectionInfo)
        writer.write("chan_info", 4, self.channelInfo)
    }
}

extension CommandError {
    fileprivate func write(to writer: inout some FieldWriter) {
        writer.write("code", 1, UInt64(self.code))
        writer.write("message", 2, self.message)
        writer.write("temporary", 3, self.isTemporary)
    }
}
