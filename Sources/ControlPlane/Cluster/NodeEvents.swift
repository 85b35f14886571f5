import ControlAPI
import GatewayCore
import WireText

/// Events of one node after a position, as nodes get them from each other.
package struct EventBatch: Sendable, Equatable {
    /// One event, or the gap where events are missing.
    package struct Item: Sendable, Equatable {
        /// Of a gap: the number of the last missing event.
        package var number: UInt64
        package var type: String
        /// JSON of the wire model, without its position.
        package var text: [UInt8]

        package init(number: UInt64, type: String, text: [UInt8]) {
            (self.number, self.type, self.text) = (number, type, text)
        }

        /// The text with the event's position in the events of all nodes.
        func text(at position: String) -> [UInt8] {
            var text = JSONText(capacity: self.text.count + position.utf8.count + 16)
            text.beginObject()
            text.member("position", position)
            text.endObject()
            // Both are objects that have members.
            return text.bytes.dropLast() + [UInt8(ascii: ",")] + self.text.dropFirst()
        }
    }

    /// Identifies the process: another one counts its events from 1.
    package var instance: String
    /// The number of the last event that was read, whether or not it matches.
    package var position: UInt64
    package var items: [Item] = []
    /// Whether the node did not wait for an event although it was asked to: others have all places for that.
    package var isImmediate = false

    package init(instance: String, position: UInt64) {
        self.instance = instance
        self.position = position
    }

    package var encoded: [UInt8] {
        var text = JSONText(capacity: self.items.reduce(256) { $0 + $1.text.count + 64 })
        text.beginObject()
        text.member("instance", self.instance)
        text.member("position", self.position)
        if self.isImmediate { text.member("immediate", true) }
        text.key("items")
        text.beginArray()
        for item in self.items {
            text.beginObject()
            text.member("number", item.number)
            text.member("type", item.type)
            text.key("event")
            text.raw(item.text)
            text.endObject()
        }
        text.endArray()
        text.endObject()
        return text.bytes
    }

    /// - Returns: `nil` for bytes that are no batch.
    package init?(_ bytes: [UInt8]) {
        var batch = EventBatch(instance: "", position: 0)
        let isDocument = JSONReader.readDocument(bytes) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "instance": batch.instance = try value.readString()
            case "position": batch.position = try value.readUInt64()
            case "immediate": batch.isImmediate = try value.readBool()
            case "items":
                try value.readArray { (item) throws(JSONSyntaxError) in batch.items.append(try Self.item(&item)) }
            default: try value.skipValue()
            }
        }
        // The type becomes a line of the stream, and the text gets a further member.
        let isComplete = batch.items.allSatisfy {
            Event.types.contains($0.type) && $0.text.starts(with: Array(#"{""#.utf8))
        }
        guard isDocument, isComplete else { return nil }
        self = batch
    }

    private static func item(_ reader: inout JSONReader) throws(JSONSyntaxError) -> Item {
        var item = Item(number: 0, type: "", text: [])
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "number": item.number = try value.readUInt64()
            case "type": item.type = try value.readString()
            case "event": item.text = try value.readRaw()
            default: try value.skipValue()
            }
        }
        return item
    }
}

/// Asks a node for events after a position.
package struct EventRequest: Sendable, Equatable {
    /// `nil` asks where the node's events end.
    package var position: UInt64?
    /// The process to which the position belongs, or the beginning of its identifier; empty if it is not known, as with 0.
    package var instance = ""
    /// How long the node waits for the first event, in milliseconds.
    package var waitMs = 0
    /// The filters of `/v1/events`.
    package var query = ""

    package init() {}

    package var encoded: [UInt8] {
        var text = JSONText()
        text.beginObject()
        text.member("position", self.position)
        text.member("instance", self.instance)
        text.member("waitMs", self.waitMs)
        text.member("query", self.query)
        text.endObject()
        return text.bytes
    }

    /// - Returns: `nil` for bytes that are no such request.
    package init?(_ bytes: [UInt8]) {
        var request = EventRequest()
        let isDocument = JSONReader.readDocument(bytes) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "position": request.position = try value.readUInt64()
            case "instance": request.instance = try value.readString()
            case "waitMs": request.waitMs = try value.readInt()
            case "query": request.query = try value.readString()
            default: try value.skipValue()
            }
        }
        guard isDocument else { return nil }
        self = request
    }
}

/// The events of this node, for itself and for others.
struct NodeEvents: Sendable {
    /// Longest wait for an event, whatever the other node asks.
    private static let longestWait = Duration.seconds(10)
    /// Bytes of events in one batch, from which on no further one is added.
    private static let batchBytes = 256 << 10

    let log: EventLog
    let node: String
    let instance: String

    /// - Parameter waiting: bounds the answers that wait for an event; further ones do not wait.
    /// - Returns: the answer to another node; empty for an invalid request.
    func answer(_ content: [UInt8], _ waiting: ConcurrencyLimit) async -> [UInt8] {
        guard var request = EventRequest(content), let query = try? Query(request.query),
            let filter = try? EventFilter(query)
        else { return [] }
        guard request.waitMs > 0 else { return await self.batch(request, filter).encoded }
        let waited = await waiting.run { [request] in await self.batch(request, filter) }
        if let waited { return waited.encoded }
        request.waitMs = 0
        var batch = await self.batch(request, filter)
        batch.isImmediate = true
        return batch.encoded
    }

    /// Waits for events that match. Returns without any at the end of the wait.
    func batch(_ request: EventRequest, _ filter: EventFilter) async -> EventBatch {
        guard var position = request.position else {
            return EventBatch(instance: self.instance, position: self.log.last)
        }
        let deadline = ContinuousClock.now.advanced(by: min(.milliseconds(max(0, request.waitMs)), Self.longestWait))
        // Numbers of another process say nothing about this one's events.
        if !EventPosition.Last(position, request.instance).belongs(to: self.instance) {
            var batch = self.next(after: 0, filter)
            batch.items.insert(self.gap(position...position), at: 0)
            return batch
        }
        let end = self.log.last
        while true {
            let batch = self.next(after: position, filter)
            let rest = ContinuousClock.now.duration(to: deadline)
            guard batch.items.isEmpty, rest > .zero || batch.position < end, !Task.isCancelled else { return batch }
            position = batch.position
            // Events that do not match were read: there may be more at once. Those that were there at the beginning are
            // read in any case.
            if self.log.last > position { continue }
            let (log, last) = (self.log, position)
            let hasMore = try? await Waiting.withTimeout(rest) { await log.wait(after: last) }
            guard hasMore == true else { return batch }
        }
    }

    private func next(after position: UInt64, _ filter: EventFilter) -> EventBatch {
        let found = self.log.events(after: position)
        var batch = EventBatch(instance: self.instance, position: position)
        if let missed = found.missed {
            batch.items.append(self.gap(missed))
            // The position may be from before a restart: the first event of this process comes next.
            batch.position = found.events.first.map { $0.number - 1 } ?? 0
            return batch
        }
        var bytes = 0
        for event in found.events where bytes < Self.batchBytes {
            batch.position = event.number
            guard filter.matches(event) else { continue }
            let text = event.encoding.text { EventWriter.json(event, at: nil, node: self.node) }
            bytes += text.count
            batch.items.append(EventBatch.Item(number: event.number, type: event.kind.rawValue, text: text))
        }
        return batch
    }

    private func gap(_ missed: ClosedRange<UInt64>) -> EventBatch.Item {
        EventBatch.Item(
            number: missed.upperBound, type: "gap", text: EventWriter.gap(missed, at: nil, node: self.node))
    }
}
