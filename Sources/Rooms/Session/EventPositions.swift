import WireText

/// Positions up to which a client that only receives has got its recoverable rooms. Server-Sent Events carry them as their
/// ids: a browser sends the last one back when it connects again.
///
/// An id is a list of `NAME=EPOCH.OFFSET`, separated by `&`, with percent-encoded names and epochs.
///
/// - Source: WHATWG HTML, §9.2.
package struct EventPositions: Sendable {
    /// Of an id, in bytes: each event carries one.
    package static let sizeLimit = 2048

    private struct Entry {
        let channel: String
        /// The entry's text without its offset.
        let text: String
        var offset: UInt64
    }

    private let limit: Int
    private var entries: [Entry] = []
    /// Of the entries' texts, in bytes.
    private var size = 0
    /// The rooms have more than an id can hold. From then on events have none.
    private var isOverflowed = false

    /// - Parameters:
    ///   - limit: of an id, in bytes; at most `sizeLimit` counts.
    ///   - received: positions that the client has come back with. They stay for rooms that it cannot enter this time.
    package init(limit: Int = Self.sizeLimit, received: [String: StreamPosition] = [:]) {
        self.limit = min(limit, Self.sizeLimit)
        for (channel, position) in received.sorted(by: { $0.key < $1.key }) {
            self.set(channel, position.epoch, position.offset)
        }
    }

    /// The id of the event with this reply, which names what the client has got with it. Empty if that is too long: then
    /// the client forgets the id that it has. `nil` for an event without an id, after which the last one stays valid.
    package mutating func sent(_ reply: Reply) -> String? {
        switch reply {
        case .connect(_, let result):
            for (channel, room) in result.subscriptions {
                self.enter(channel, room, at: room.publications.last?.offset ?? room.position.offset)
            }
            return self.entries.isEmpty ? nil : self.identifier
        case .push(let channel, .subscribe(let room)):
            self.enter(channel, room, at: room.position.offset)
            return room.isRecoverable ? self.identifier : nil
        case .push(let channel, .publication(let publication)):
            return self.sentPublication(in: channel, offset: publication.offset)
        // A client that was unsubscribed has what came before, and may be in the room again later.
        case .push, .ping, .error, .subscribe, .unsubscribe, .publish, .pong, .presence, .presenceStats, .history,
            .refresh, .subscriptionRefresh:
            return nil
        }
    }

    /// The same for a publication that is encoded already.
    package mutating func sentPublication(in channel: String, offset: UInt64) -> String? {
        guard offset > 0, let index = self.entries.firstIndex(where: { $0.channel == channel }) else { return nil }
        self.entries[index].offset = offset
        return self.identifier
    }

    private mutating func enter(_ channel: String, _ room: Reply.SubscribeResult, at offset: UInt64) {
        if room.isRecoverable { self.set(channel, room.position.epoch, offset) }
    }

    private mutating func set(_ channel: String, _ epoch: String, _ offset: UInt64) {
        // Rooms that do not fit need not be looked for.
        guard !self.isOverflowed, self.size <= self.limit else { return }
        let text = "\(PercentCoding.encoded(channel))=\(PercentCoding.encoded(epoch))."
        let entry = Entry(channel: channel, text: text, offset: offset)
        self.size += text.utf8.count + 1
        if let index = self.entries.firstIndex(where: { $0.channel == channel }) {
            self.size -= self.entries[index].text.utf8.count + 1
            self.entries[index] = entry
        } else {
            self.entries.append(entry)
        }
    }

    private var identifier: String? {
        mutating get {
            guard !self.isOverflowed else { return nil }
            var text = ""
            text.reserveCapacity(self.size + 20 * self.entries.count)
            for entry in self.entries {
                if !text.isEmpty { text += "&" }
                text += "\(entry.text)\(entry.offset)"
                guard text.utf8.count > self.limit else { continue }
                self.isOverflowed = true
                self.entries = []
                return ""
            }
            return text
        }
    }

    /// The positions in an id, by the names of their rooms; `nil` for a text that is none.
    package static func positions(in identifier: String) -> [String: StreamPosition]? {
        guard identifier.utf8.count <= Self.sizeLimit else { return nil }
        var positions: [String: StreamPosition] = [:]
        for entry in identifier.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            let parts = entry.split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
            guard parts.count == 2, let channel = PercentCoding.decodedText(Substring(parts[0])), !channel.isEmpty,
                let position = Self.position(parts[1]),
                positions.updateValue(position, forKey: channel) == nil
            else { return nil }
        }
        return positions
    }

    private static func position(_ text: Substring.UTF8View) -> StreamPosition? {
        guard let dot = text.lastIndex(of: UInt8(ascii: ".")),
            let offset = Substring(text[text.index(after: dot)...]).decimal,
            let epoch = PercentCoding.decodedText(Substring(text[..<dot]))
        else { return nil }
        return StreamPosition(offset: UInt64(offset), epoch: StreamPosition.epoch(epoch))
    }
}
