import CommandLineText
import ControlAPI
import Foundation

/// Follows a stream of numbered events, and comes back to it where it was when the connection is lost.
package struct EventFollower: Sendable {
    /// Pauses between attempts, which begin anew with each event.
    private static let pauses: [Duration] = [
        .milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2), .seconds(4),
    ]

    private let session: ControlSession
    private let request: ControlRequest
    /// Id of the last event, from which the server continues.
    private var lastID = ""
    private var body: ControlBody?
    private var parser = EventStreamParser()
    private var waiting: [ServerSentEvent] = []
    private var failures = 0
    private var wasOpen = false

    /// - Parameter request: a GET.
    package init(_ session: ControlSession, _ request: ControlRequest) {
        self.session = session
        self.request = request
    }

    /// Result of parsing a line.
    package enum Step: Sendable {
        case event(ServerSentEvent)
        /// The connection is lost; it is tried again after the pause.
        case lost(ControlFailure, pause: Duration)
    }

    /// - Throws: `ControlFailure` when it cannot be opened at first, is refused later, or cannot be opened again.
    package mutating func next() async throws(ControlFailure) -> Step {
        while true {
            if !self.waiting.isEmpty { return .event(self.taken()) }
            do throws(ControlFailure) {
                try await self.read()
            } catch {
                guard self.wasOpen, [.noConnection, .later].contains(error.kind), self.failures < Self.pauses.count
                else {
                    throw error
                }
                let pause = Self.pauses[self.failures]
                self.failures += 1
                self.body = nil
                return .lost(error, pause: pause)
            }
        }
    }

    private mutating func taken() -> ServerSentEvent {
        let event = self.waiting.removeFirst()
        self.lastID = event.lastID
        self.failures = 0
        return event
    }

    private mutating func read() async throws(ControlFailure) {
        guard let body = self.body else { return try await self.open() }
        guard let bytes = try await body.next() else {
            self.body = nil
            throw ControlFailure(
                .noConnection, "\(self.session.address) ended the stream of events",
                remedy: "the gateway may have ended; its log says more")
        }
        do throws(EventStreamParser.Overflow) {
            self.waiting = try self.parser.events(bytes)
        } catch {
            throw ControlFailure(.nonsense, "an event is too long")
        }
    }

    private mutating func open() async throws(ControlFailure) {
        var request = self.request
        if !self.lastID.isEmpty {
            request.headers["Last-Event-ID"] = self.lastID
            request.parameters.removeAll { $0.name == "after" }
        }
        let (headers, body) = try await self.session.open(request, accept: "text/event-stream")
        guard headers.mediaType == "text/event-stream" else {
            throw ControlFailure(foreign: 200, at: self.session.address)
        }
        self.parser = EventStreamParser()
        self.body = body
        self.wasOpen = true
    }
}

/// Reads Server-Sent Events from bytes in any pieces (WHATWG HTML §9.2.6).
package struct EventStreamParser: Sendable {
    /// An event or a line is longer than the limit.
    package struct Overflow: Error, Equatable {
        package init() {}
    }

    /// Longest event in bytes, and longest line.
    private let limit: Int
    private var line: [UInt8] = []
    /// The last byte was a CR: an LF behind it belongs to it.
    private var isBehindReturn = false
    private var isAtBeginning = true
    private var type = ""
    private var data: [UInt8] = []
    private var hasData = false
    /// Taken over into the next event that comes.
    private var lastID = ""

    package init(limit: Int = 4 << 20) {
        self.limit = limit
    }

    /// - Returns: the events that `bytes` complete. An unfinished one at the end of the stream is none.
    package mutating func events(_ bytes: [UInt8]) throws(Overflow) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            switch byte {
            case 0x0A where self.isBehindReturn: self.isBehindReturn = false
            case 0x0A, 0x0D:
                self.isBehindReturn = byte == 0x0D
                if let event = self.lineEnded() { events.append(event) }
            default:
                self.isBehindReturn = false
                self.line.append(byte)
                guard self.line.count + self.data.count <= self.limit else { throw Overflow() }
            }
        }
        return events
    }

    private mutating func lineEnded() -> ServerSentEvent? {
        var line = self.line[...]
        self.line.removeAll(keepingCapacity: true)
        if self.isAtBeginning {
            self.isAtBeginning = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
        }
        guard !line.isEmpty else { return self.dispatched() }
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        var value = line.dropFirst(name.count + 1)
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "event": self.type = String(decoding: value, as: UTF8.self)
        case "data":
            if self.hasData { self.data.append(0x0A) }
            self.data += value
            self.hasData = true
        case "id": if !value.contains(0) { self.lastID = String(decoding: value, as: UTF8.self) }
        default: break
        }
        return nil
    }

    private mutating func dispatched() -> ServerSentEvent? {
        defer {
            self.type = ""
            self.data = []
            self.hasData = false
        }
        guard self.hasData else { return nil }
        return ServerSentEvent(type: self.type.isEmpty ? "message" : self.type, data: self.data, lastID: self.lastID)
    }
}

/// One event of a stream of them (WHATWG HTML §9.2).
package struct ServerSentEvent: Sendable, Equatable {
    /// `message` where the stream does not say.
    package var type: String
    /// The lines of its data, with LF between them.
    package var data: [UInt8]
    /// The last id up to here; empty where there was none.
    package var lastID: String

    package init(type: String, data: [UInt8], lastID: String) {
        self.type = type
        self.data = data
        self.lastID = lastID
    }
}

/// Formats an event as a line for people.
package enum EventLine {
    /// Safe to print.
    package static func line(_ event: Event, colors: Bool = false) -> String {
        let time = event.at.map { self.time($0) } ?? ""
        let ink = self.ink(event.type)
        let type = CellText.fit(event.type, cells: 15)
        let words = TerminalText.line(self.words(event), limit: 1000)
        return "\(CellText.fit(time, cells: 12))  \(colors ? ink.drawn(type) : type)  \(words)"
    }

    /// Time of day of a timestamp, in UTC.
    private static func time(_ timestamp: String) -> String {
        guard let mark = timestamp.firstIndex(of: "T") else { return timestamp }
        return String(timestamp[timestamp.index(after: mark)...].prefix { $0 != "Z" && $0 != "+" })
    }

    private static func ink(_ type: String) -> Ink {
        switch type {
        case "opened", "upstreamUp", "reloaded", "transferEnded": .green
        case "upstreamDown", "reloadFailed", "limitHit", "transferFailed", "gap": .red
        case "drainStarted", "drainProgressed", "drainEnded": .yellow
        default: .plain
        }
    }

    private static func words(_ event: Event) -> String {
        if let first = event.missedFrom, let last = event.missedTo {
            return "events \(first) to \(last) are not kept any more"
        }
        let facts = [
            event.connection, event.listener.map { "on \($0)" }, event.route.map { "route \($0)" },
            event.upstream.map { "upstream \($0)" },
            event.endpoint == event.upstream ? nil : event.endpoint.map { "endpoint \($0)" }, event.url,
            event.peerAddress.map { "peer \($0)" },
            event.drain.map { "drain \($0)" }, event.transfer.map { "transfer \($0)" },
            event.count.map { "count \($0)" }, event.reason, event.detail,
            event.closeReason.flatMap { $0.isEmpty ? nil : "said \"\($0)\"" },
            event.receivedBytes.map { "received \(QuantityText.bytes($0))" },
            event.sentBytes.map { "sent \(QuantityText.bytes($0))" },
            event.labels.map { $0.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ") },
        ]
        return facts.compactMap(\.self).joined(separator: ", ")
    }
}
