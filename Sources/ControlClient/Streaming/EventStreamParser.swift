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
