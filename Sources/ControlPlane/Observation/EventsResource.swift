import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// `/v1/events`: the gateway's events, as Server-Sent Events or over a WebSocket.
struct EventsResource: Sendable {
    private static let defaultHeartbeat = Duration.seconds(15)

    let context: ControlContext

    var operations: [Operation] {
        [Operation("followEvents", .get, "/v1/events", .read, Self.document) { try await self.follow($0) }]
    }

    private static let document = OperationDocument(
        "Follows events, as Server-Sent Events or over a WebSocket",
        parameters: [
            "after": [
                "pattern": "^(([0-9a-f]+\\.)?[0-9]+|[0-9]+@[^,]+(,[0-9]+@[^,]+)*)$", "example": "0",
                "description": """
                The position of the last event received. A gap and all events that are kept follow one of another process, \
                and a number alone. 0, and for nodes that it does not name: starts with the first event that is kept.
                """,
            ],
            "heartbeatMs": .milliseconds(
                from: 10, to: 600_000,
                "Sends a comment, or a ping, after this time without an event. Default: 15000.", example: 15_000),
        ].merging(EventFilter.parameters) { first, _ in first }.merging(StreamBounds.parameters) { first, _ in first },
        headers: ["Last-Event-ID": "The id of the last event received. Overrides `after`."],
        responses: [
            .init(101, "A WebSocket with one event per message"),
            .init(200, "Events, with positions as ids", .events(of: Event.self, example: Examples.event)),
        ], problems: [405, 409, 426])

    private func follow(_ call: ControlCall) async throws -> Response {
        guard let log = self.context.gateway.eventLog else {
            throw ControlProblem(409, "no-journal", "This gateway has no event log.")
        }
        let heartbeat = try call.query.milliseconds("heartbeatMs") ?? Self.defaultHeartbeat
        guard (.milliseconds(10) ... .seconds(600)).contains(heartbeat) else {
            throw ControlProblem.invalid(parameter: "heartbeatMs", "heartbeatMs must be from 10 to 600000.")
        }
        if let cluster = self.context.cluster {
            return try await self.follow(call, log, on: NodeCaller(cluster: cluster), heartbeat: heartbeat)
        }
        let reader = EventReader(
            log, of: self.context.gateway.instance, filter: try EventFilter(call.query),
            after: try Self.position(call, own: "").withoutNodes(own: ""), heartbeat: heartbeat,
            bounds: try StreamBounds(call.query))
        if call.wantsWebSocket {
            return try await ControlUpgrade(call: call).webSocket(on: self.context.loop) { socket in
                await Self.send(reader, to: socket)
            }
        }
        return try await EventStream.response(call) { writer, disconnect in
            var reader = reader
            reader.disconnect = disconnect
            while true {
                switch await reader.next() {
                case .events(let events):
                    try await writer.writeEvents(events) { event in
                        let id = reader.position(of: event)
                        return EventStream.Item(
                            data: reader.json(of: event, at: id), id: id, type: event.kind.rawValue)
                    }
                case .gap(let missed):
                    let id = reader.last.text
                    try await writer.writeEvent(EventWriter.gap(missed, at: id), textID: id, type: "gap")
                case .heartbeat: try await writer.writeComment()
                case .end: return
                }
            }
        }
    }

    private static func send(_ reader: EventReader, to socket: WebSocketTask) async {
        var reader = reader
        while true {
            let texts: [[UInt8]]
            switch await reader.next() {
            case .events(let events): texts = events.map { reader.json(of: $0, at: reader.position(of: $0)) }
            case .gap(let missed): texts = [EventWriter.gap(missed, at: reader.last.text)]
            case .heartbeat:
                guard (try? await socket.sendPing()) != nil else { return }
                continue
            case .end: return socket.cancel(with: .goingAway)
            }
            for text in texts {
                guard (try? await socket.send(.string(String(decoding: text, as: UTF8.self)))) != nil else { return }
            }
        }
    }
}

/// Selects events. Gaps are always reported.
package struct EventFilter: Sendable, Equatable {
    static let parameters: [String: JSONValue] = [
        "type": .text("Event types, separated by commas: \(Self.knownKinds).", example: "opened,closed"),
        "connection": .text("Ids of connections, separated by commas.", example: "17"),
        "listener": .text("Names of listeners, separated by commas.", example: "web"),
        "route": .text("Names of routes, separated by commas.", example: "chat"),
        "upstream": .text("Names of upstreams or URLs of endpoints, separated by commas.", example: "backend"),
        "transfer": .text("Ids of transfers, separated by commas.", example: "3"),
    ]
    private static let knownKinds = GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")

    private let kinds: Set<GatewayEvent.Kind>
    private let connections: Set<ConnectionKey>
    private let listeners: Set<String>
    private let routes: Set<String>
    private let upstreams: Set<String>
    private let transfers: Set<String>

    /// - Throws: `ControlProblem` for an unknown type or a malformed id.
    package init(_ query: Query) throws(ControlProblem) {
        self.kinds = try query.set("type", expecting: "one of \(Self.knownKinds)") { GatewayEvent.Kind(rawValue: $0) }
        self.connections = try query.set("connection", expecting: "the id of a connection") { ConnectionKey($0) }
        self.listeners = Set(try query.nonEmptyList("listener"))
        self.routes = Set(try query.nonEmptyList("route"))
        self.upstreams = Set(try query.nonEmptyList("upstream"))
        self.transfers = Set(try query.nonEmptyList("transfer"))
    }

    package func matches(_ event: GatewayEvent) -> Bool {
        self.kinds.selects(event.kind) && self.connections.selects(event.connection)
            && self.listeners.selects(event.listener) && self.routes.selects(event.route)
            && (self.upstreams.selects(event.upstream) || self.upstreams.selects(event.endpoint))
            && self.transfers.selects(event.transfer)
    }
}

/// Reads the event log for one client: events in order, gaps and heartbeats.
private struct EventReader: Sendable {
    enum Step: Sendable {
        case events([GatewayEvent])
        /// Events that the log has dropped already, or never had: their numbers are of another process.
        case gap(ClosedRange<UInt64>)
        case heartbeat
        case end
    }

    private let log: EventLog
    private let filter: EventFilter
    private let heartbeat: Duration
    private let bounds: StreamBounds
    /// Ends the reading when the client disconnects.
    var disconnect: OneTimeEvent?
    /// The last event read.
    private(set) var last: EventPosition.Last
    /// The last event that the client got of another process.
    private var former: UInt64?
    /// Number of events returned.
    private var count = 0

    /// - Parameter instance: the process of the log.
    init(
        _ log: EventLog, of instance: String, filter: EventFilter, after last: EventPosition.Last?,
        heartbeat: Duration, bounds: StreamBounds
    ) {
        self.log = log
        self.filter = filter
        self.heartbeat = heartbeat
        self.bounds = bounds
        self.last = EventPosition.Last(last?.number ?? log.last, instance)
        guard let last, !last.belongs(to: instance) else { return }
        self.former = last.number
        self.last.number = 0
    }

    func position(of event: GatewayEvent) -> String {
        EventPosition.Last(event.number, self.last.instance).text
    }

    /// Many followers read the same events: the others would wait for the encoding of each.
    func json(of event: GatewayEvent, at position: String) -> [UInt8] {
        event.encoding.text { EventWriter.json(event, at: position) }
    }

    mutating func next() async -> Step {
        while !Task.isCancelled, !self.bounds.isReached(self.count) {
            if let former = self.former.take() { return .gap(former...former) }
            let batch = self.log.events(after: self.last.number)
            if let missed = batch.missed {
                self.last.number = batch.events.first.map { $0.number - 1 } ?? 0
                return .gap(missed)
            }
            if let last = batch.events.last {
                self.last.number = last.number
                let events = batch.events.filter(self.filter.matches).prefix(self.bounds.remaining(after: self.count))
                if events.isEmpty { continue }
                self.count += events.count
                return .events(Array(events))
            }
            switch await self.hasMore() {
            case true?: continue
            case false?: return .end
            case nil: return Task.isCancelled || self.bounds.isReached(self.count) ? .end : .heartbeat
            }
        }
        return .end
    }

    /// - Returns: `true` if there are more events, `false` if there never will be, `nil` when a heartbeat is due.
    private func hasMore() async -> Bool? {
        let (log, position, disconnect) = (self.log, self.last.number, self.disconnect)
        let limit = min(self.heartbeat, self.bounds.timeLeft ?? self.heartbeat)
        let outcome = try? await Waiting.withTimeout(limit) { () -> Bool? in
            guard let disconnect else { return await log.wait(after: position) }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask { await log.wait(after: position) }
                group.addTask { await disconnect.wait() ? false : nil }
                let hasMore = await group.next() ?? nil
                group.cancelAll()
                return hasMore
            }
        }
        return outcome ?? nil
    }
}

/// A response body of Server-Sent Events.
enum EventStream {
    struct Item {
        /// A single line.
        let data: [UInt8]
        let id: String?
        let type: String
    }

    struct Writer {
        /// Bytes from which on no further event is added to a write.
        private static let pieceSize = 64 << 10

        fileprivate var body: any ResponseBodyWriter

        /// Writes events together: each write costs a turn of the event loop that serves all connections.
        mutating func writeEvents<Source>(_ events: some Sequence<Source>, _ item: (Source) -> Item) async throws {
            var buffer = ByteBuffer()
            for event in events {
                Self.add(item(event), to: &buffer)
                guard buffer.readableBytes >= Self.pieceSize else { continue }
                try await self.body.write(buffer)
                buffer = ByteBuffer()
            }
            if buffer.readableBytes > 0 { try await self.body.write(buffer) }
        }

        /// - Parameter data: a single line.
        mutating func writeEvent(_ data: [UInt8], id: UInt64?, type: String) async throws {
            try await self.writeEvent(data, textID: id.map { "\($0)" }, type: type)
        }

        mutating func writeEvent(_ data: [UInt8], textID id: String?, type: String) async throws {
            var buffer = ByteBuffer()
            Self.add(Item(data: data, id: id, type: type), to: &buffer)
            try await self.body.write(buffer)
        }

        private static func add(_ item: Item, to buffer: inout ByteBuffer) {
            if let id = item.id { buffer.writeString("id: \(id)\n") }
            buffer.writeString("event: \(item.type)\ndata: ")
            buffer.writeBytes(item.data)
            buffer.writeString("\n\n")
        }

        /// Sends an empty comment as a heartbeat.
        mutating func writeComment() async throws {
            try await self.body.write(ByteBuffer(string: ":\n\n"))
        }
    }

    /// A response whose body `write` writes until it returns; it must return when the client disconnects.
    static func response(
        _ call: ControlCall, _ write: @escaping @Sendable (inout Writer, OneTimeEvent) async throws -> Void
    ) async throws -> Response {
        let disconnect = try await call.clientDisconnect()
        let body = ResponseBody { writer in
            var stream = Writer(body: writer)
            // Sends the response head at once.
            try await stream.writeComment()
            try await write(&stream, disconnect)
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }
}

/// Writes events as JSON, in the form of the wire model.
package enum EventWriter {
    /// - Parameters:
    ///   - position: `nil` in a cluster, where the node that follows the events of all adds it.
    ///   - node: the name of this node in its cluster.
    package static func json(_ event: GatewayEvent, at position: String?, node: String? = nil) -> [UInt8] {
        func qualified(_ id: String?) -> String? { id.map { id in node.map { "\(id)@\($0)" } ?? id } }
        var text = JSONText(capacity: 256)
        text.beginObject()
        text.member("number", event.number)
        text.member("position", position)
        text.member("node", node)
        text.member("type", event.kind.rawValue)
        text.member("at", WallClock.text(milliseconds: event.at))
        text.member("connection", qualified(event.connection?.description))
        text.member("listener", event.listener)
        text.member("route", event.route)
        text.member("upstream", event.upstream)
        text.member("endpoint", event.endpoint)
        text.member("url", event.url)
        text.member("peerAddress", event.peer)
        text.member("user", event.user)
        text.member("reason", event.reason)
        text.member("detail", event.detail)
        text.member("closeCode", event.closeCode)
        text.member("closeReason", event.closeReason)
        text.member("receivedBytes", event.receivedBytes)
        text.member("sentBytes", event.sentBytes)
        text.member("labels", event.labels)
        text.member("count", event.count)
        text.member("drain", event.drain)
        text.member("transfer", event.transfer)
        text.endObject()
        return text.bytes
    }

    /// An event that reports dropped events; its number is that of the last of them.
    package static func gap(_ missed: ClosedRange<UInt64>, at position: String?, node: String? = nil) -> [UInt8] {
        JSONBody.encode(
            Event {
                $0.node = node
                $0.position = position
                ($0.number, $0.type) = (missed.upperBound, "gap")
                ($0.missedFrom, $0.missedTo) = (missed.lowerBound, missed.upperBound)
            })
    }
}

/// Limits of a stream of events or tap pieces; without limits it lasts until the client disconnects.
struct StreamBounds: Sendable {
    static let parameters: [String: JSONValue] = [
        "limit": .integer(1...Self.maximumLimit, "Ends the stream after this number of events.", example: 10),
        "durationMs": .milliseconds(to: 86_400_000, "Ends the stream after this time."),
    ]
    static let maximumLimit = 1_000_000
    private static let maximumDuration = Duration.seconds(86_400)

    private let limit: Int?
    private var deadline: ContinuousClock.Instant?

    /// - Throws: `ControlProblem` for a limit outside 1 to 1 000 000, or a duration above a day.
    init(_ query: Query) throws(ControlProblem) {
        self.limit = try query.integer("limit", in: 1...Self.maximumLimit)
        guard let duration = try query.milliseconds("durationMs") else { return }
        guard duration <= Self.maximumDuration else {
            throw ControlProblem.invalid(parameter: "durationMs", "durationMs must be at most 86400000.")
        }
        self.deadline = ContinuousClock.now.advanced(by: duration)
    }

    func isReached(_ count: Int) -> Bool {
        self.remaining(after: count) == 0 || self.timeLeft == .zero
    }

    func remaining(after count: Int) -> Int {
        self.limit.map { max(0, $0 - count) } ?? .max
    }

    /// `nil` without a deadline.
    var timeLeft: Duration? {
        self.deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
    }
}
