import CommandLineText
import ControlAPI
import Foundation

/// Follows a stream of Server-Sent Events. After a lost connection it reconnects and continues after the last event.
package struct EventFollower: Sendable {
    /// Delays between reconnection attempts; each event resets them.
    private static let retryDelays: [Duration] = [
        .milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2), .seconds(4),
    ]

    private let session: ControlSession
    private let request: ControlRequest
    /// ID of the last event, sent as `Last-Event-ID`.
    private var lastID = ""
    private var body: ControlBody?
    private var parser = EventStreamParser()
    private var pending: [ServerSentEvent] = []
    private var failures = 0
    private var wasOpen = false

    /// - Parameter request: a GET.
    package init(_ session: ControlSession, _ request: ControlRequest) {
        self.session = session
        self.request = request
    }

    /// An event or a lost connection.
    package enum Step: Sendable {
        case event(ServerSentEvent)
        /// The connection was lost. The caller waits for `retryAfter` before the next call.
        case disconnected(ControlFailure, retryAfter: Duration)
    }

    /// - Throws: `ControlFailure` if the first connection fails, a request is refused, or all attempts to reconnect fail.
    package mutating func next() async throws(ControlFailure) -> Step {
        while true {
            if !self.pending.isEmpty { return .event(self.takePending()) }
            do throws(ControlFailure) {
                try await self.read()
            } catch {
                guard self.wasOpen, [.noConnection, .unavailable].contains(error.kind),
                    self.failures < Self.retryDelays.count
                else {
                    throw error
                }
                let delay = Self.retryDelays[self.failures]
                self.failures += 1
                self.body = nil
                return .disconnected(error, retryAfter: delay)
            }
        }
    }

    private mutating func takePending() -> ServerSentEvent {
        let event = self.pending.removeFirst()
        // Events without an id, first in a new stream, do not change the position.
        if !event.lastID.isEmpty { self.lastID = event.lastID }
        self.failures = 0
        return event
    }

    private mutating func read() async throws(ControlFailure) {
        guard let body = self.body else { return try await self.open() }
        guard let bytes = try await body.next() else {
            self.body = nil
            throw ControlFailure(
                .noConnection, "\(self.session.address) closed the event stream",
                remedy: "check that the gateway is running, and see its log")
        }
        do throws(EventStreamParser.Overflow) {
            self.pending = try self.parser.events(bytes)
        } catch {
            throw ControlFailure(.invalidResponse, "an event is too long")
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

/// Incremental parser for Server-Sent Events (WHATWG HTML §9.2.6).
package struct EventStreamParser: Sendable {
    /// An event or a line is longer than the limit.
    package struct Overflow: Error, Equatable {
        package init() {}
    }

    /// Maximum size of an event, and of a line, in bytes.
    private let limit: Int
    private var line: [UInt8] = []
    /// The last byte was CR: a following LF belongs to the same line terminator.
    private var isAfterCR = false
    private var isFirstLine = true
    private var type = ""
    private var data: [UInt8] = []
    private var hasData = false
    /// Persists until the next `id` field.
    private var lastID = ""

    package init(limit: Int = 4 << 20) {
        self.limit = limit
    }

    /// - Returns: the events completed by `bytes`. An incomplete event at the end of the stream is discarded.
    package mutating func events(_ bytes: [UInt8]) throws(Overflow) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            switch byte {
            case 0x0A where self.isAfterCR: self.isAfterCR = false
            case 0x0A, 0x0D:
                self.isAfterCR = byte == 0x0D
                if let event = self.processLine() { events.append(event) }
            default:
                self.isAfterCR = false
                self.line.append(byte)
                guard self.line.count + self.data.count <= self.limit else { throw Overflow() }
            }
        }
        return events
    }

    private mutating func processLine() -> ServerSentEvent? {
        var line = self.line[...]
        self.line.removeAll(keepingCapacity: true)
        if self.isFirstLine {
            self.isFirstLine = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
        }
        guard !line.isEmpty else { return self.dispatch() }
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

    private mutating func dispatch() -> ServerSentEvent? {
        defer {
            self.type = ""
            self.data = []
            self.hasData = false
        }
        guard self.hasData else { return nil }
        return ServerSentEvent(type: self.type.isEmpty ? "message" : self.type, data: self.data, lastID: self.lastID)
    }
}

/// A Server-Sent Event (WHATWG HTML §9.2).
package struct ServerSentEvent: Sendable, Equatable {
    /// `message` if the stream does not specify a type.
    package var type: String
    /// Data lines joined with LF.
    package var data: [UInt8]
    /// The last ID received so far; empty if there was none.
    package var lastID: String

    package init(type: String, data: [UInt8], lastID: String) {
        self.type = type
        self.data = data
        self.lastID = lastID
    }
}

/// Formats an event as a line of text.
package enum EventLine {
    /// The result is sanitized.
    package static func line(_ event: Event, colors: Bool = false) -> String {
        let time = event.at.map { self.time($0) } ?? ""
        let style = self.style(event.type)
        let type = CellText.fit(event.type, cells: 15)
        let words = TerminalText.singleLine(self.words(event), limit: 1000)
        return "\(CellText.fit(time, cells: 12))  \(colors ? style.applied(to: type) : type)  \(words)"
    }

    /// Time of day of a timestamp, in UTC.
    private static func time(_ timestamp: String) -> String {
        guard let mark = timestamp.firstIndex(of: "T") else { return timestamp }
        return String(timestamp[timestamp.index(after: mark)...].prefix { $0 != "Z" && $0 != "+" })
    }

    private static func style(_ type: String) -> TextStyle {
        switch type {
        case "opened", "upstreamUp", "reloaded", "transferEnded": .green
        case "upstreamDown", "reloadFailed", "limitHit", "transferFailed", "gap": .red
        case "drainStarted", "drainProgressed", "drainEnded": .yellow
        default: .plain
        }
    }

    private static func words(_ event: Event) -> String {
        if let first = event.missedFrom, let last = event.missedTo {
            return "events \(first) to \(last)\(event.node.map { " of node \($0)" } ?? "") are no longer kept"
        }
        let parts = [
            // The ids of connections name their node.
            event.connection == nil ? event.node.map { "node \($0)" } : nil,
            event.connection, event.listener.map { "on \($0)" }, event.route.map { "route \($0)" },
            event.upstream.map { "upstream \($0)" },
            event.endpoint == event.upstream ? nil : event.endpoint.map { "endpoint \($0)" }, event.url,
            event.peerAddress.map { "peer \($0)" }, event.user.map { "user \($0)" },
            event.drain.map { "drain \($0)" }, event.transfer.map { "transfer \($0)" },
            event.count.map { "count \($0)" }, event.reason, event.detail,
            event.closeReason.flatMap { $0.isEmpty ? nil : "close reason \"\($0)\"" },
            event.receivedBytes.map { "received \(QuantityText.bytes($0))" },
            event.sentBytes.map { "sent \(QuantityText.bytes($0))" },
            event.labels.map { $0.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ") },
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }
}
