import RedisEngine
import Rooms

/// Publications of a stream, and to which epoch the offsets belong.
struct StreamRange {
    /// Identifiers in the stream, as `XRANGE` takes them.
    var lowest = "-"
    var highest = "+"
    /// Number of publications at most.
    var limit: Int
    /// Whether the newest come first.
    var isReversed = false
    /// Of a stream with another epoch, all is read; empty for any.
    var epoch = ""

    /// The newest after this offset.
    init(after offset: UInt64, limit: Int, epoch: String) {
        self.lowest = "\(offset &+ 1)-0"
        self.limit = limit
        self.isReversed = true
        self.epoch = epoch
    }

    /// - Parameter request: `since` is after, or before it if reversed.
    init(_ request: Command.HistoryRequest) {
        self.limit = request.limit < 0 ? Int(Int32.max) : request.limit
        self.isReversed = request.isReversed
        guard let since = request.since else { return }
        guard request.isReversed else {
            self.lowest = since.offset == .max ? "+" : "\(since.offset + 1)-0"
            return
        }
        if since.offset <= 1 { self.limit = 0 } else { self.highest = "\(since.offset - 1)-0" }
    }
}

/// What Redis keeps of a part of a stream, as `RoomScripts.read` returns it.
struct StreamPage {
    struct Entry {
        /// In the stream.
        let identifier: String
        /// The first part of the identifier.
        let offset: UInt64?
        /// As Redis counts it for the size of a history.
        let cost: Int
        /// `nil` for what another program, or a later version, wrote.
        let publication: (publication: Publication, plain: RoomMessage.Plain?, origin: RoomMessage.Origin?)?
    }

    /// Of the newest publication of the whole stream.
    let position: StreamPosition
    /// Number of removals from the stream so far.
    let removals: UInt64
    /// In the order of the range.
    let entries: [Entry]
    /// Whether the range may have more entries, for which the page had not enough bytes.
    let isFull: Bool
    /// Offset of the oldest entry of the whole stream; `nil` if it has none.
    let oldest: UInt64?
    /// Time after which the stream expires; `nil` if it has no entries, or never expires.
    let lasting: Duration?
    /// Offset of the last publication before the epoch began; `nil` if it is not known.
    let epochStart: UInt64?

    /// - Parameter node: this one.
    /// - Throws: if it is no reply of the script.
    init(_ reply: RedisValue, node: String) throws {
        let parts = try reply.array()
        guard parts.count == 8, let offset = UInt64(exactly: try parts[1].int()),
            let removals = UInt64(exactly: try parts[3].int())
        else { throw UnexpectedReply() }
        self.position = StreamPosition(offset: offset, epoch: try parts[0].text())
        self.removals = removals
        self.entries = try parts[2].array().map { try Self.entry($0, node) }
        self.isFull = try parts[4].int() == 1
        self.oldest = Self.offset(of: try parts[5].text())
        let milliseconds = try parts[6].int()
        self.lasting = milliseconds < 0 ? nil : .milliseconds(milliseconds)
        self.epochStart = UInt64(try parts[7].text())
    }

    private static func offset(of identifier: String) -> UInt64? {
        identifier.firstIndex(of: "-").flatMap { UInt64(identifier[..<$0]) }
    }

    private static func entry(_ value: RedisValue, _ node: String) throws -> Entry {
        let pair = try value.array()
        guard pair.count == 2, let content = try pair[1].array().last?.bytes() else { throw UnexpectedReply() }
        let identifier = try pair[0].text()
        let cost = content.count + RoomScripts.entryOverhead
        let offset = Self.offset(of: identifier)
        guard let offset, offset > 0, offset <= Int64.max,
            let message = RoomMessage.Parts(content, offset: offset, node: node),
            case .publication(let publication) = message.content
        else { return Entry(identifier: identifier, offset: offset, cost: cost, publication: nil) }
        return Entry(
            identifier: identifier, offset: offset, cost: cost,
            publication: (publication, message.plain, message.origin))
    }
}

/// Reads a range of a stream page by page. Nodes publish and remove meanwhile: pages are combined if they are of one epoch
/// nothing was removed between them, and what lies between them was not trimmed; else reading starts over.
struct StreamReading {
    enum Action {
        case read(StreamRange)
        case finish(Contents)
        /// Too much was removed or trimmed, or the epoch changed too often.
        case giveUp
    }

    /// The publications read.
    struct Contents {
        /// The oldest first. Those between two of them were removed.
        var entries: [StreamPage.Entry] = []
        var position = StreamPosition()
        var removals: UInt64 = 0
        /// Time after which the stream expires, from the last page's reply on.
        var lasting: Duration?
        /// Offset of the last publication before the epoch began; `nil` if it is not known.
        var epochStart: UInt64?
        /// Whether the range may have more entries, which exceed the limit of bytes.
        var isCut = false
    }

    /// Pages of one range, one after the other.
    private struct Part {
        /// The range that is not read yet.
        var rest: StreamRange
        /// When the first page was read.
        var position: StreamPosition?
        /// In the order of the range.
        var entries: [StreamPage.Entry] = []
        var cost = 0
    }

    /// Limit of restarts of a reading.
    private static let restartLimit = 10

    private let range: StreamRange
    private let byteLimit: Int
    let follows: Bool
    private var part: Part
    private var contents = Contents()
    private var newest: StreamPosition?
    private var restarts = 0

    /// - Parameters:
    ///   - byteLimit: cost of entries above which no further page is read.
    ///   - follows: whether to read, too, what is published during the reading: all that is older than the last page's
    ///     reply. The range must be reversed, and end with the newest publication.
    init(_ range: StreamRange, byteLimit: Int, follows: Bool) {
        self.range = range
        self.byteLimit = byteLimit
        self.follows = follows
        self.part = Part(rest: range)
    }

    var first: StreamRange { self.range }

    mutating func received(_ page: StreamPage) -> Action {
        guard self.continues(page) else {
            self.restarts += 1
            guard self.restarts < Self.restartLimit else { return .giveUp }
            self.newest = nil
            self.contents = Contents()
            self.part = Part(rest: self.range)
            return .read(self.range)
        }
        self.newest = page.position
        self.contents.removals = page.removals
        (self.contents.lasting, self.contents.epochStart) = (page.lasting, page.epochStart)
        let isFirst = self.part.position == nil
        // The last page may have what was published after the first, unless the newest come first.
        let position = self.range.isReversed ? self.part.position ?? page.position : page.position
        self.part.position = position
        self.add(page)
        if page.isFull, self.part.rest.limit > 0, self.part.cost <= self.byteLimit { return .read(self.part.rest) }
        self.finishPart(at: position, isFull: page.isFull)
        // The reply of a part's only page has all that was published before it.
        guard self.follows, !isFirst, page.position.offset > position.offset else { return .finish(self.contents) }
        self.part = Part(rest: StreamRange(after: position.offset, limit: self.range.limit, epoch: position.epoch))
        return .read(self.part.rest)
    }

    /// Whether the page can be combined with those before.
    private func continues(_ page: StreamPage) -> Bool {
        guard let newest = self.newest else { return true }
        return page.position.epoch == newest.epoch && page.removals == self.contents.removals
            && page.position.offset >= newest.offset && !self.hasHole(before: page)
    }

    /// Whether entries between the last one read and this page were trimmed. Redis trims the oldest entries only, so nothing
    /// is missing while the last entry read still exists.
    private func hasHole(before page: StreamPage) -> Bool {
        guard !self.range.isReversed, let last = self.part.entries.last?.offset else { return false }
        if let oldest = page.oldest, oldest <= last { return false }
        let next = page.entries.first?.offset ?? page.position.offset &+ 1
        return next != last &+ 1
    }

    private mutating func add(_ page: StreamPage) {
        if !self.part.rest.epoch.isEmpty, self.part.rest.epoch != page.position.epoch { self.part.rest.lowest = "-" }
        self.part.rest.epoch = page.position.epoch
        self.part.rest.limit -= page.entries.count
        self.part.entries += page.entries
        self.part.cost += page.entries.reduce(0) { $0 + $1.cost }
        guard let last = page.entries.last else { return }
        if self.range.isReversed {
            self.part.rest.highest = "(\(last.identifier)"
        } else {
            self.part.rest.lowest = "(\(last.identifier)"
        }
    }

    private mutating func finishPart(at position: StreamPosition, isFull: Bool) {
        let entries = self.range.isReversed ? self.part.entries.reversed() : self.part.entries
        // All after the part before was published meanwhile, and nothing of it was removed. If some is missing nevertheless,
        // the limits, or those of the stream, allow no more than this part.
        if UInt64(entries.count) != position.offset - self.contents.position.offset { self.contents.entries = [] }
        self.contents.entries += entries
        self.contents.position = position
        self.contents.isCut = isFull && self.part.rest.limit > 0
    }
}
