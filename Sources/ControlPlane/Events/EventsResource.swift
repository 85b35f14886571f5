import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// `/v1/events`: what happens, as Server-Sent Events or over a WebSocket.
struct EventsResource: Sendable {
    static let heartbeat = Duration.seconds(15)

    let context: ControlContext

    var operations: [Operation] {
        let parameters = EventFilter.parameters.union(["after", "heartbeatMs"]).union(StreamBounds.parameters)
        return [
            Operation("followEvents", .get, "/v1/events", .read, parameters: parameters) { try await self.follow($0) }
        ]
    }

    private func follow(_ call: ControlCall) async throws -> Response {
        guard let journal = self.context.gateway.eventLog else {
            throw ControlProblem(409, "no-journal", "This gateway keeps no events.")
        }
        let filter = try EventFilter(call.query)
        let heartbeat = try call.query.milliseconds("heartbeatMs") ?? Self.heartbeat
        guard (.milliseconds(10) ... .seconds(600)).contains(heartbeat) else {
            throw ControlProblem(400, "invalid-parameter", "heartbeatMs must be from 10 to 600000.")
                .at(parameter: "heartbeatMs")
        }
        let reader = EventReader(
            journal, filter: filter, after: try Self.position(call), heartbeat: heartbeat,
            bounds: try StreamBounds(call.query))
        if call.wantsWebSocket {
            return try await ControlUpgrade(call).webSocket(on: self.context.loop) { socket in
                await Self.pour(reader, into: socket)
            }
        }
        return try await EventStream.response(call) { writer, gone in
            var reader = reader
            reader.disconnect = gone
            while true {
                switch await reader.next() {
                case .events(let events):
                    for event in events {
                        try await writer.writeEvent(EventWriter.json(event), id: event.number, type: event.kind.rawValue)
                    }
                case .gap(let missed):
                    try await writer.writeEvent(EventWriter.gap(missed), id: missed.upperBound, type: "gap")
                case .heartbeat: try await writer.writeComment()
                case .end: return
                }
            }
        }
    }

    /// `Last-Event-ID`, as a client sends it that comes back, or `after`.
    private static func position(_ call: ControlCall) throws(ControlProblem) -> UInt64? {
        if let text = call.request.headers[.lastEventID], !text.isEmpty {
            guard let number = UInt64(text) else {
                throw ControlProblem(400, "invalid-header", "Last-Event-ID must be the number of an event.")
            }
            return number
        }
        guard let text = try call.query.value("after") else { return nil }
        guard let number = UInt64(text) else {
            throw ControlProblem(400, "invalid-parameter", "after must be the number of an event.").at(
                parameter: "after")
        }
        return number
    }

    private static func pour(_ reader: EventReader, into socket: WebSocketTask) async {
        var reader = reader
        while true {
            let texts: [[UInt8]]
            switch await reader.next() {
            case .events(let events): texts = events.map(EventWriter.json)
            case .gap(let missed): texts = [EventWriter.gap(missed)]
            case .heartbeat:
                // The peer's life is asked for by a ping.
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

/// Which events somebody wants. Gaps are always told.
package struct EventFilter: Sendable, Equatable {
    package static let parameters: Set<String> = ["type", "connection", "listener", "route", "upstream", "transfer"]

    private let kinds: Set<GatewayEvent.Kind>
    private let connections: Set<ConnectionKey>
    private let listeners: Set<String>
    private let routes: Set<String>
    private let upstreams: Set<String>
    private let transfers: Set<String>

    /// - Throws: `ControlProblem` for a type or an id that is none.
    package init(_ query: Query) throws(ControlProblem) {
        var kinds: Set<GatewayEvent.Kind> = []
        for name in query.list("type") {
            guard let kind = GatewayEvent.Kind(rawValue: name) else {
                let known = GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw ControlProblem(400, "invalid-parameter", "type must be of \(known).").at(parameter: "type")
            }
            kinds.insert(kind)
        }
        var connections: Set<ConnectionKey> = []
        for name in query.list("connection") {
            guard let key = ConnectionKey(name) else {
                throw ControlProblem(400, "invalid-parameter", "connection must be the id of a connection.")
                    .at(parameter: "connection")
            }
            connections.insert(key)
        }
        self.kinds = kinds
        self.connections = connections
        self.listeners = Set(query.list("listener"))
        self.routes = Set(query.list("route"))
        self.upstreams = Set(query.list("upstream"))
        self.transfers = Set(query.list("transfer"))
    }

    package func matches(_ event: GatewayEvent) -> Bool {
        (self.kinds.isEmpty || self.kinds.contains(event.kind))
            && Self.holds(self.connections, event.connection) && Self.holds(self.listeners, event.listener)
            && Self.holds(self.routes, event.route)
            && (Self.holds(self.upstreams, event.upstream) || Self.holds(self.upstreams, event.endpoint))
            && Self.holds(self.transfers, event.transfer)
    }

    private static func holds<Value>(_ wanted: Set<Value>, _ value: Value?) -> Bool {
        wanted.isEmpty || value.map { wanted.contains($0) } == true
    }
}

/// Follows the journal for one client: what comes next, in order, with gaps and heartbeats.
struct EventReader: Sendable {
    enum Step: Sendable {
        case events([GatewayEvent])
        case gap(ClosedRange<UInt64>)
        /// Nothing happened for a while.
        case heartbeat
        case end
    }

    let log: EventLog
    let filter: EventFilter
    let heartbeat: Duration
    /// Where it ends by itself, if it does.
    let bounds: StreamBounds
    /// Ends the reading when the client is not there any more.
    var disconnect: ClientDisconnect?
    /// The number up to which everything was given.
    private(set) var position: UInt64

    /// Events that were given.
    private var given = 0

    init(
        _ journal: EventLog, filter: EventFilter, after position: UInt64?, heartbeat: Duration,
        bounds: StreamBounds = StreamBounds()
    ) {
        self.log = journal
        self.filter = filter
        self.heartbeat = heartbeat
        self.bounds = bounds
        self.position = position ?? journal.last
    }

    mutating func next() async -> Step {
        while !Task.isCancelled, !self.bounds.isReached(self.given) {
            let batch = self.log.events(after: self.position)
            if let missed = batch.missed {
                // From another life of the process: what is kept of this one follows.
                self.position = batch.events.first.map { $0.number - 1 } ?? 0
                return .gap(missed)
            }
            if let last = batch.events.last {
                self.position = last.number
                let wanted = batch.events.filter(self.filter.matches).prefix(self.bounds.remaining(after: self.given))
                if wanted.isEmpty { continue }
                self.given += wanted.count
                return .events(Array(wanted))
            }
            switch await self.more() {
            case true?: continue
            case false?: return .end
            case nil: return Task.isCancelled || self.bounds.isReached(self.given) ? .end : .heartbeat
            }
        }
        return .end
    }

    /// - Returns: whether there is more to read, or never will be; `nil` when it is time for a heartbeat.
    private func more() async -> Bool? {
        let (journal, position, gone) = (self.log, self.position, self.disconnect)
        let limit = min(self.heartbeat, self.bounds.timeLeft ?? self.heartbeat)
        let outcome = try? await Waiting.withTimeout(limit) { () -> Bool? in
            guard let gone else { return await journal.wait(after: position) }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask { await journal.wait(after: position) }
                group.addTask { await gone.wait() ? false : nil }
                let isOn = await group.next() ?? nil
                group.cancelAll()
                return isOn
            }
        }
        return outcome ?? nil
    }
}

/// A body of Server-Sent Events.
enum EventStream {
    /// Writes one stream's events.
    struct Writer {
        fileprivate var body: any ResponseBodyWriter

        /// `data` is one line.
        mutating func writeEvent(_ data: [UInt8], id: UInt64?, type: String) async throws {
            var buffer = ByteBuffer()
            if let id { buffer.writeString("id: \(id)\n") }
            buffer.writeString("event: \(type)\ndata: ")
            buffer.writeBytes(data)
            buffer.writeString("\n\n")
            try await self.body.write(buffer)
        }

        /// Keeps the connection from looking dead.
        mutating func writeComment() async throws {
            try await self.body.write(ByteBuffer(string: ":\n\n"))
        }
    }

    /// A response whose body `pour` writes until it returns, which it must when the client has gone away.
    static func response(
        _ call: ControlCall, _ pour: @escaping @Sendable (inout Writer, ClientDisconnect) async throws -> Void
    ) async throws -> Response {
        let gone = try await call.clientDisconnect()
        let body = ResponseBody { writer in
            var stream = Writer(body: writer)
            // At once, so that the client knows that it is heard.
            try await stream.writeComment()
            try await pour(&stream, gone)
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }
}

/// Writes events as JSON, in the form of the wire model.
package enum EventWriter {
    package static func json(_ event: GatewayEvent) -> [UInt8] {
        var text = JSONText(capacity: 256)
        text.beginObject()
        text.member("number", event.number)
        text.member("type", event.kind.rawValue)
        text.member("at", WallClock.text(milliseconds: event.at))
        text.member("connection", event.connection?.description)
        text.member("listener", event.listener)
        text.member("route", event.route)
        text.member("upstream", event.upstream)
        text.member("endpoint", event.endpoint)
        text.member("url", event.url)
        text.member("peerAddress", event.peer)
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

    /// Stands for events that were missed; its number is that of the last of them.
    package static func gap(_ missed: ClosedRange<UInt64>) -> [UInt8] {
        var text = JSONText(capacity: 96)
        text.beginObject()
        text.member("number", missed.upperBound)
        text.member("type", "gap")
        text.member("missedFrom", missed.lowerBound)
        text.member("missedTo", missed.upperBound)
        text.endObject()
        return text.bytes
    }
}

/// Where a stream of events or pieces ends by itself: without bounds it goes on for as long as its client stays.
struct StreamBounds: Sendable {
    static let parameters: Set<String> = ["limit", "durationMs"]
    static let maximumLimit = 1_000_000
    static let maximumDuration = Duration.seconds(86_400)

    private var limit: Int?
    private var deadline: ContinuousClock.Instant?

    /// None.
    init() {}

    /// - Throws: `ControlProblem` for a limit that is not 1 to 1 000 000, or a duration above a day.
    init(_ query: Query) throws(ControlProblem) {
        self.limit = try query.integer("limit", in: 1...Self.maximumLimit)
        guard let duration = try query.milliseconds("durationMs") else { return }
        guard duration <= Self.maximumDuration else {
            throw ControlProblem(400, "invalid-parameter", "durationMs must be at most 86400000.")
                .at(parameter: "durationMs")
        }
        self.deadline = ContinuousClock.now.advanced(by: duration)
    }

    func isReached(_ count: Int) -> Bool {
        self.remaining(after: count) == 0 || self.timeLeft == .zero
    }

    /// How many more may follow.
    func remaining(after count: Int) -> Int {
        self.limit.map { max(0, $0 - count) } ?? .max
    }

    /// `nil` without a deadline.
    var timeLeft: Duration? {
        self.deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
    }
}
