import ControlAPI
import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization
import WireText

/// Lists connections page by page.
struct ConnectionList: Sendable {
    static let defaultLimit = 100
    static let maximumLimit = 1000

    let gateway: Gateway
    let filter: ConnectionFilter
    let sort: ConnectionSort
    let limit: Int
    let snapshots: ListSnapshots
    /// Whether a list that fits in one page is kept too, as a page may be read in parts.
    var keepsShortLists = false

    struct Page: Sendable {
        let reports: ReportSelection
        let next: PageCursor?
        /// Of a list in a snapshot: for each report, the start of a page that follows it.
        var positions: [PageCursor]?

        /// For each report, the start of a page that follows it.
        var cursors: [PageCursor] { self.positions ?? self.reports.keys.map { .after($0) } }
    }

    /// - Throws: `ControlProblem` 410 for a cursor into a snapshot that was dropped.
    func page(_ cursor: PageCursor?) async throws(ControlProblem) -> Page {
        switch cursor {
        case nil where self.sort.isStable: return await self.page(after: nil)
        case .after(let key)? where self.sort.isStable: return await self.page(after: key)
        case nil:
            let keys = self.sort.sorted(await self.all())
            guard keys.count > self.limit || self.keepsShortLists else {
                return await self.page(keys, from: 0, number: 0)
            }
            return await self.page(keys, from: 0, number: self.snapshots.store(keys))
        case .position(let number, let offset)?:
            guard let keys = self.snapshots.keys(number) else {
                throw ControlProblem(410, "cursor-expired", "The cursor has expired; start again without one.")
                    .at(parameter: "cursor")
            }
            return await self.page(keys, from: offset, number: number)
        case .after?:
            throw ControlProblem(400, "invalid-cursor", "The cursor belongs to a list in another order.")
                .at(parameter: "cursor")
        }
    }

    /// Lists by key. Keys are unique and never change, so every connection that exists throughout is listed once.
    private func page(after key: ConnectionKey?) async -> Page {
        var found = ReportSelection([])
        if self.filter.includesClosed {
            found.add(await self.gateway.closedReports()) { self.matches($0, after: key) }
        }
        let closed = Set(found.keys)
        var rest = self.filter.includesOnlyClosed ? [] : await self.gateway.liveIdentifiers(from: key?.number ?? 0)[...]
        // One connection beyond the limit shows that there are more, and the first may be `key` itself.
        while !rest.isEmpty {
            let batch = rest.prefix(max(256, self.limit + 2))
            rest = rest.dropFirst(batch.count)
            for reports in await self.gateway.reports(of: Array(batch)) {
                found.add(reports) { !closed.contains($0.key) && self.matches($0, after: key) }
            }
            found.sortByKey()
            // The page is final once all its keys precede those not yet visited.
            if let first = rest.first, let extra = found.keys.dropFirst(self.limit).first, extra.number < first {
                break
            }
        }
        found.sortByKey()
        let hasMore = found.count > self.limit
        found.truncate(to: self.limit)
        return Page(reports: found, next: hasMore ? found.keys.last.map { .after($0) } : nil)
    }

    private func matches(_ report: borrowing ConnectionReport, after key: ConnectionKey?) -> Bool {
        if let key, report.key <= key { return false }
        return self.filter.matches(report)
    }

    /// The reports of all connections that match.
    func all() async -> [ConnectionReport] {
        var found: [ConnectionReport] = []
        if self.filter.includesClosed { found = await self.gateway.closedReports().filter(self.filter.matches) }
        guard !self.filter.includesOnlyClosed else { return found }
        let closed = Set(found.map(\.key))
        let live = await self.gateway.reports(of: await self.gateway.liveIdentifiers())
        return found + live.joined().filter { !closed.contains($0.key) && self.filter.matches($0) }
    }

    /// A page of a snapshot. A connection that closed meanwhile is listed as closed if its report is still kept.
    private func page(_ keys: [ConnectionKey], from offset: Int, number: UInt64) async -> Page {
        let wanted = keys.dropFirst(offset).prefix(self.limit)
        let live = await self.gateway.reports(of: Set(wanted.map(\.number)).sorted())
        var byKey = Dictionary(live.joined().map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        if wanted.contains(where: { byKey[$0] == nil }) {
            for report in await self.gateway.closedReports() where byKey[report.key] == nil {
                byKey[report.key] = report
            }
        }
        let end = offset + wanted.count
        let next = end < keys.count ? PageCursor.position(snapshot: number, offset: end) : nil
        let found = zip(wanted, offset...).compactMap { key, index in
            byKey[key].map { (report: $0, position: PageCursor.position(snapshot: number, offset: index + 1)) }
        }
        return Page(
            reports: ReportSelection(found.map(\.report)), next: next, positions: found.map(\.position))
    }
}

/// Selects connections. All conditions must hold; of several values of one condition, any.
package struct ConnectionFilter: Sendable, Equatable {
    /// A label that a connection must have, with this value if one is given.
    package struct Label: Sendable, Equatable {
        package let name: String
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }

        /// `NAME`, `NAME:VALUE` or `NAME=VALUE`.
        package init(_ text: String) {
            let mark = text.firstIndex(of: ":")
            self.init(
                name: String(text[..<(mark ?? text.endIndex)]),
                value: mark.map { String(text[text.index(after: $0)...]) })
        }

        package func matches(_ labels: [String: String]) -> Bool {
            if let found = labels[self.name] { return self.value == nil || self.value == found }
            // Names contain no colon but may contain an equals sign, so NAME=VALUE is tried second.
            let text = self.value.map { "\(self.name):\($0)" } ?? self.name
            guard let mark = text.firstIndex(of: "=") else { return false }
            return labels[String(text[..<mark])] == String(text[text.index(after: mark)...])
        }
    }

    /// A condition: its query parameter, and how it is read.
    private struct Condition: Sendable {
        let name: String
        let schema: JSONValue
        let read: @Sendable (inout ConnectionFilter, Query, String) throws(ControlProblem) -> Void

        init(
            _ name: String, _ schema: JSONValue,
            _ read: @escaping @Sendable (inout ConnectionFilter, Query, String) throws(ControlProblem) -> Void
        ) {
            (self.name, self.schema, self.read) = (name, schema, read)
        }

        static func names(
            _ name: String, _ schema: JSONValue,
            _ member: any WritableKeyPath<ConnectionFilter, Set<String>> & Sendable
        ) -> Condition {
            Condition(name, schema) { (filter, query, name) throws(ControlProblem) in
                filter[keyPath: member] = Set(try query.nonEmptyList(name))
            }
        }
    }

    private static let conditions: [Condition] = [
        Condition("id", .text("Ids, separated by commas.", example: "17,17u")) {
            (filter, query, name) throws(ControlProblem) in
            filter.keys = try query.set(name, expecting: "the id of a connection") { ConnectionKey($0) }
        },
        Condition(
            "kind",
            .choice(
                ConnectionKind.allCases.map(\.rawValue), "Streams, WebSockets or plain HTTP.", example: "webSocket")
        ) { (filter, query, name) throws(ControlProblem) in
            filter.kinds = try query.set(name, expecting: Self.choices(ConnectionKind.self)) {
                ConnectionKind(rawValue: $0)
            }
        },
        Condition(
            "state",
            .choice(
                TaskStage.allCases.map(\.rawValue) + ["any"],
                "Default: all but closed connections; any: closed ones too.", example: "open")
        ) { (filter, query, name) throws(ControlProblem) in filter.stages = try Self.stages(query, name) },
        Condition(
            "direction",
            .choice(["accepted", "opened"], "Accepted by a listener, or opened by the gateway.", example: "accepted")
        ) { (filter, query, name) throws(ControlProblem) in
            let directions = try query.set(name, expecting: "accepted or opened") {
                $0 == "accepted" ? true : $0 == "opened" ? false : nil
            }
            filter.isAccepted = directions.count == 1 ? directions.first : nil
        },
        .names("listener", .text("The name of a listener.", example: "web"), \.listeners),
        .names("route", .text("The name of a route.", example: "chat"), \.routes),
        .names(
            "upstream", .text("The name of an upstream, or the URL of an endpoint.", example: "backend"), \.upstreams),
        .names("peer", .text("An address, with or without its port.", example: "192.0.2.7"), \.peers),
        Condition(
            "user",
            .text("The name of a user, in which commas are as they are. Repeat it for several.", example: "ada")
        ) { (filter, query, name) throws(ControlProblem) in filter.users = try query.names(name) },
        Condition("label", .label) { (filter, query, name) throws(ControlProblem) in
            filter.labels = try query.labels(name)
        },
        Condition("minAgeMs", .milliseconds("Minimum age.")) { (filter, query, name) throws(ControlProblem) in
            filter.minimumAge = try query.milliseconds(name)
        },
        Condition("maxAgeMs", .milliseconds("Maximum age.")) { (filter, query, name) throws(ControlProblem) in
            filter.maximumAge = try query.milliseconds(name)
        },
        Condition("minIdleMs", .milliseconds("Minimum time without payload.")) {
            (filter, query, name) throws(ControlProblem) in
            filter.minimumIdle = try query.milliseconds(name)
        },
        Condition("stalled", .boolean("Whether reading is paused because data cannot be forwarded.")) {
            (filter, query, name) throws(ControlProblem) in
            filter.isStalled = try query.boolean(name)
        },
    ]

    /// Schemas of the query parameters, by name.
    static let parameters = Dictionary(uniqueKeysWithValues: Self.conditions.map { ($0.name, $0.schema) })

    package var keys: Set<ConnectionKey> = []
    package var kinds: Set<ConnectionKind> = []
    package var isAccepted: Bool?
    /// Empty means all but closed connections.
    package var stages: Set<TaskStage> = []
    package var listeners: Set<String> = []
    package var routes: Set<String> = []
    /// Names of upstreams, or URLs of endpoints.
    package var upstreams: Set<String> = []
    /// Addresses with or without a port.
    package var peers: Set<String> = []
    /// Names of users, which are equal if their bytes are.
    package var users: Set<MemberName> = []
    package var labels: [Label] = []
    package var minimumAge: Duration?
    package var maximumAge: Duration?
    package var minimumIdle: Duration?
    package var isStalled: Bool?

    package init() {}

    /// - Throws: `ControlProblem` for an invalid value.
    package init(_ query: Query) throws(ControlProblem) {
        for condition in Self.conditions { try condition.read(&self, query, condition.name) }
    }

    /// `any` means all states.
    private static func stages(_ query: Query, _ name: String) throws(ControlProblem) -> Set<TaskStage> {
        if query.list(name).contains("any") { return Set(TaskStage.allCases) }
        return try query.set(name, expecting: self.choices(TaskStage.self) + ", or any") { TaskStage(rawValue: $0) }
    }

    private static func choices<Choice: CaseIterable & RawRepresentable<String>>(_ type: Choice.Type) -> String {
        type.allCases.map(\.rawValue).joined(separator: ", ")
    }

    /// Whether there are no conditions; selects all connections that are not closed.
    package var isEmpty: Bool { self == ConnectionFilter() }

    package var includesClosed: Bool { self.stages.contains(.closed) }
    package var includesOnlyClosed: Bool { self.stages == [.closed] }

    package func matches(_ report: borrowing ConnectionReport) -> Bool {
        guard self.stages.isEmpty ? report.stage != .closed : self.stages.contains(report.stage),
            self.keys.isEmpty || self.keys.contains(report.key), self.kinds.isEmpty || self.kinds.contains(report.kind),
            self.isAccepted == nil || self.isAccepted == report.isAccepted,
            self.isStalled == nil || self.isStalled == report.isStalled,
            self.listeners.selects(report.listener), self.routes.selects(report.route),
            self.upstreams.selects(report.upstream) || self.upstreams.selects(report.endpoint),
            self.users.selects(report.user.map { MemberName($0) })
        else { return false }
        return self.matchesPeer(report) && self.matchesTimes(report)
            && self.labels.allSatisfy { $0.matches(report.labels) }
    }

    private func matchesPeer(_ report: borrowing ConnectionReport) -> Bool {
        guard !self.peers.isEmpty else { return true }
        return [report.peer, report.client].contains { address in
            address.map { self.peers.contains($0.description) || self.peers.contains($0.host) } == true
        }
    }

    private func matchesTimes(_ report: borrowing ConnectionReport) -> Bool {
        let age = report.createdAt.duration(to: report.closing?.at ?? report.takenAt)
        if let minimum = self.minimumAge, age < minimum { return false }
        if let maximum = self.maximumAge, age > maximum { return false }
        if let minimum = self.minimumIdle, report.idle < minimum { return false }
        return true
    }
}

extension Set {
    /// Whether a condition with these values selects `value`; an empty set selects everything.
    func selects(_ value: Element?) -> Bool {
        self.isEmpty || value.map { self.contains($0) } == true
    }
}

/// The order of a list of connections.
package struct ConnectionSort: Sendable, Equatable {
    package enum Criterion: String, CaseIterable, Sendable {
        case id
        case bytes, receivedBytes, sentBytes, queuedBytes, rtt, idle, age
    }

    package var criterion = Criterion.id
    package var isDescending = false

    package init() {}

    /// `bytes`, or `-bytes` for the largest first.
    package init(_ query: Query) throws(ControlProblem) {
        guard let text = try query.value("sort") else { return }
        self.isDescending = text.hasPrefix("-")
        guard let criterion = Criterion(rawValue: String(text.drop { $0 == "-" })),
            text.count - criterion.rawValue.count == (self.isDescending ? 1 : 0)
        else {
            let known = Criterion.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlProblem.invalid(
                parameter: "sort", "sort must be one of \(known), with a leading - for descending order.")
        }
        self.criterion = criterion
    }

    /// Whether the sort key never changes, so that paging needs no snapshot of the whole list.
    package var isStable: Bool { self.criterion == .id && !self.isDescending }

    /// The sort key; `id` is compared by the connection's key instead.
    package func value(_ report: ConnectionReport) -> Int64 {
        switch self.criterion {
        case .id: 0
        case .bytes: Int64(clamping: (report.record?.bytesReceived ?? 0) &+ (report.record?.bytesSent ?? 0))
        case .receivedBytes: Int64(clamping: report.record?.bytesReceived ?? 0)
        case .sentBytes: Int64(clamping: report.record?.bytesSent ?? 0)
        case .queuedBytes: Int64(report.queuedSendBytes + report.queuedReceiveBytes)
        case .rtt: report.roundTrips?.last?.wholeMicroseconds ?? -1
        case .idle: report.idle.wholeMicroseconds
        case .age: report.createdAt.duration(to: report.closing?.at ?? report.takenAt).wholeMicroseconds
        }
    }

    /// The keys in order; ties are broken by key.
    package func sorted(_ reports: [ConnectionReport]) -> [ConnectionKey] {
        let pairs = reports.map { (value: self.value($0), key: $0.key) }
        let ordered = pairs.sorted { left, right in
            if left.value != right.value {
                return self.isDescending ? left.value > right.value : left.value < right.value
            }
            return self.criterion == .id && self.isDescending ? left.key > right.key : left.key < right.key
        }
        return ordered.map(\.key)
    }
}

/// The start of a page. Opaque to clients.
package enum PageCursor: Sendable, Equatable {
    /// After this connection, in the order of keys.
    case after(ConnectionKey)
    /// At an offset of a snapshot in `ListSnapshots`.
    case position(snapshot: UInt64, offset: Int)

    package init(_ text: String) throws(ControlProblem) {
        if text.first == "a", let key = ConnectionKey(text.dropFirst()) {
            self = .after(key)
            return
        }
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        guard text.first == "k", parts.count == 2, let snapshot = UInt64(parts[0], radix: 16),
            let offset = Int(parts[1]), offset >= 0
        else {
            throw ControlProblem(
                400, "invalid-cursor", "The cursor is invalid; start without one."
            ).at(parameter: "cursor")
        }
        self = .position(snapshot: snapshot, offset: offset)
    }

    package var text: String {
        switch self {
        case .after(let key): "a\(key)"
        case .position(let snapshot, let offset): "k\(String(snapshot, radix: 16)).\(offset)"
        }
    }
}

/// An ordered selection of reports. Reports are large, so they stay in the arrays of their loops and only indices move.
struct ReportSelection: Sendable {
    private struct Entry {
        let key: ConnectionKey
        let array: Int
        let index: Int
    }

    private var arrays: [[ConnectionReport]] = []
    private var entries: [Entry] = []

    init(_ reports: [ConnectionReport]) {
        self.add(reports) { _ in true }
    }

    var count: Int { self.entries.count }

    var keys: some RandomAccessCollection<ConnectionKey> { self.entries.lazy.map(\.key) }

    /// Appends the selected reports.
    mutating func add(_ reports: [ConnectionReport], where isSelected: (borrowing ConnectionReport) -> Bool) {
        let span = reports.span
        for index in span.indices where isSelected(span[index]) {
            self.entries.append(Entry(key: span[index].key, array: self.arrays.count, index: index))
        }
        self.arrays.append(reports)
    }

    mutating func sortByKey() {
        let entries = self.entries
        // The reports of one loop are already in order.
        guard zip(entries, entries.dropFirst()).contains(where: { $1.key < $0.key }) else { return }
        self.entries.sort { $0.key < $1.key }
    }

    mutating func truncate(to count: Int) {
        self.entries.removeLast(max(0, self.entries.count - count))
    }

    func withEach(_ body: (borrowing ConnectionReport) -> Void) {
        for entry in self.entries {
            let array = self.arrays[entry.array]
            let reports = array.span
            body(reports[entry.index])
        }
    }
}

/// Snapshots of the order of lists whose sort key changes: without one, a connection could move between pages and be
/// missed. Bounded: the least recently used snapshot is dropped.
package final class ListSnapshots: Sendable {
    package static let limit = 16
    /// Keys in all snapshots together.
    package static let keyLimit = 1_000_000

    private struct Snapshot {
        let number: UInt64
        let keys: [ConnectionKey]
    }

    /// The least recently used first.
    private let snapshots = Mutex<[Snapshot]>([])

    package init() {}

    package func store(_ keys: [ConnectionKey]) -> UInt64 {
        let number = Machine.randomWords(1).first ?? 0
        self.snapshots.withLock { snapshots in
            snapshots.append(Snapshot(number: number, keys: keys))
            while snapshots.count > 1,
                snapshots.count > Self.limit || snapshots.reduce(0, { $0 + $1.keys.count }) > Self.keyLimit
            {
                snapshots.removeFirst()
            }
        }
        return number
    }

    /// - Returns: `nil` if the snapshot was dropped.
    package func keys(_ number: UInt64) -> [ConnectionKey]? {
        self.snapshots.withLock { snapshots in
            guard let index = snapshots.firstIndex(where: { $0.number == number }) else { return nil }
            let snapshot = snapshots.remove(at: index)
            snapshots.append(snapshot)
            return snapshot.keys
        }
    }
}
