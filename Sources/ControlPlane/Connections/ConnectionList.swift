import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization

/// One page of connections.
struct ConnectionList: Sendable {
    static let defaultLimit = 100
    static let maximumLimit = 1000

    let gateway: Gateway
    let filter: ConnectionFilter
    let sort: ConnectionSort
    let limit: Int
    let snapshots: ListSnapshots

    struct Page: Sendable {
        let reports: ReportSelection
        let next: PageCursor?
    }

    /// - Throws: `ControlProblem` 410 for a cursor into a list that is not kept any more.
    func page(_ cursor: PageCursor?) async throws(ControlProblem) -> Page {
        switch cursor {
        case nil where self.sort.isStable: return await self.page(behind: nil)
        case .after(let key)? where self.sort.isStable: return await self.page(behind: key)
        case nil:
            let keys = self.sort.sorted(await self.all())
            guard keys.count > self.limit else { return await self.page(keys, from: 0, number: 0) }
            return await self.page(keys, from: 0, number: self.snapshots.store(keys))
        case .position(let number, let offset)?:
            guard let keys = self.snapshots.keys(number) else {
                throw ControlProblem(410, "cursor-expired", "The list is not kept any more; begin without a cursor.")
                    .at(parameter: "cursor")
            }
            return await self.page(keys, from: offset, number: number)
        case .after?:
            throw ControlProblem(400, "invalid-cursor", "The cursor is of a list in another order.")
                .at(parameter: "cursor")
        }
    }

    /// By name: names never change and are never given twice, so every connection that is there all the time is seen
    /// once.
    private func page(behind key: ConnectionKey?) async -> Page {
        var found = ReportSelection()
        if self.filter.includesClosed {
            found.add(await self.gateway.closedReports()) { self.isMeant($0, behind: key) }
        }
        let closed = Set(found.keys)
        var rest = self.filter.includesOnlyClosed ? [] : await self.gateway.liveIdentifiers(from: key?.number ?? 0)[...]
        // One more than fits tells that there are more, and the first may be what the page is behind.
        while !rest.isEmpty {
            let turn = rest.prefix(max(256, self.limit + 2))
            rest = rest.dropFirst(turn.count)
            for reports in await self.gateway.reports(of: Array(turn)) {
                found.add(reports) { !closed.contains($0.key) && self.isMeant($0, behind: key) }
            }
            found.sortByKey()
            // Only what stands before the first that was not looked at is settled.
            if let first = rest.first, let extra = found.keys.dropFirst(self.limit).first, extra.number < first {
                break
            }
        }
        found.sortByKey()
        let hasMore = found.count > self.limit
        found.truncate(to: self.limit)
        return Page(reports: found, next: hasMore ? found.keys.last.map { .after($0) } : nil)
    }

    private func isMeant(_ report: borrowing ConnectionReport, behind key: ConnectionKey?) -> Bool {
        if let key, report.key <= key { return false }
        return self.filter.matches(report)
    }

    /// Everything that matches.
    func all() async -> [ConnectionReport] {
        var found: [ConnectionReport] = []
        if self.filter.includesClosed { found = await self.gateway.closedReports().filter(self.filter.matches) }
        guard !self.filter.includesOnlyClosed else { return found }
        let closed = Set(found.map(\.key))
        let live = await self.gateway.reports(of: await self.gateway.liveIdentifiers())
        return found + live.joined().filter { !closed.contains($0.key) && self.filter.matches($0) }
    }

    /// A part of a list that was put in order before. What ended meanwhile is shown closed, if it is remembered.
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
        return Page(reports: ReportSelection(wanted.compactMap { byKey[$0] }), next: next)
    }
}

/// Which connections somebody means. Every condition must hold; of several values of one, any.
package struct ConnectionFilter: Sendable, Equatable {
    /// A label that must be there, with this value if one is given.
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
            // A name has no colon but may have an equals sign, so that the other way to write it comes second.
            let text = self.value.map { "\(self.name):\($0)" } ?? self.name
            guard let mark = text.firstIndex(of: "=") else { return false }
            return labels[String(text[..<mark])] == String(text[text.index(after: mark)...])
        }
    }

    package static let parameters: Set<String> = [
        "id", "kind", "direction", "state", "listener", "route", "upstream", "peer", "label", "minAgeMs", "maxAgeMs",
        "minIdleMs", "stalled",
    ]

    package var keys: Set<ConnectionKey> = []
    package var kinds: Set<ConnectionKind> = []
    package var isAccepted: Bool?
    /// Empty: those that are not closed.
    package var stages: Set<TaskStage> = []
    package var listeners: Set<String> = []
    package var routes: Set<String> = []
    /// Names of upstreams, or URLs of endpoints.
    package var upstreams: Set<String> = []
    /// Addresses, with or without the port.
    package var peers: Set<String> = []
    package var labels: [Label] = []
    package var minimumAge: Duration?
    package var maximumAge: Duration?
    package var minimumIdle: Duration?
    package var isStalled: Bool?

    package init() {}

    /// - Throws: `ControlProblem` for a value that cannot be meant.
    package init(_ query: Query) throws(ControlProblem) {
        self.keys = try Self.set(query, "id", "the id of a connection") { ConnectionKey($0) }
        self.kinds = try Self.set(query, "kind", Self.words(ConnectionKind.self)) { ConnectionKind(rawValue: $0) }
        self.stages = try Self.stages(query)
        let directions = try Self.set(query, "direction", "accepted or opened") {
            $0 == "accepted" ? true : $0 == "opened" ? false : nil
        }
        self.isAccepted = directions.count == 1 ? directions.first : nil
        self.listeners = Set(query.list("listener"))
        self.routes = Set(query.list("route"))
        self.upstreams = Set(query.list("upstream"))
        self.peers = Set(query.list("peer"))
        self.labels = query.values("label").map { Label($0) }
        self.minimumAge = try query.milliseconds("minAgeMs")
        self.maximumAge = try query.milliseconds("maxAgeMs")
        self.minimumIdle = try query.milliseconds("minIdleMs")
        self.isStalled = try query.boolean("stalled")
    }

    /// `any` is every state.
    private static func stages(_ query: Query) throws(ControlProblem) -> Set<TaskStage> {
        if query.list("state").contains("any") { return Set(TaskStage.allCases) }
        return try self.set(query, "state", self.words(TaskStage.self) + ", or any") { TaskStage(rawValue: $0) }
    }

    private static func words<Choice: CaseIterable & RawRepresentable<String>>(_ type: Choice.Type) -> String {
        type.allCases.map(\.rawValue).joined(separator: ", ")
    }

    private static func set<Value: Hashable>(
        _ query: Query, _ name: String, _ expected: String, _ parse: (String) -> Value?
    ) throws(ControlProblem) -> Set<Value> {
        var values: Set<Value> = []
        for text in query.list(name) {
            guard let value = parse(text) else {
                throw ControlProblem(400, "invalid-parameter", "\(name) must be \(expected).").at(parameter: name)
            }
            values.insert(value)
        }
        return values
    }

    /// Whether it says nothing: then it means everything that lives.
    package var isEmpty: Bool { self == ConnectionFilter() }

    package var includesClosed: Bool { self.stages.contains(.closed) }
    /// Whether nothing alive can be meant.
    package var includesOnlyClosed: Bool { self.stages == [.closed] }

    package func matches(_ report: borrowing ConnectionReport) -> Bool {
        guard self.stages.isEmpty ? report.stage != .closed : self.stages.contains(report.stage),
            self.keys.isEmpty || self.keys.contains(report.key), self.kinds.isEmpty || self.kinds.contains(report.kind),
            self.isAccepted == nil || self.isAccepted == report.isAccepted,
            self.isStalled == nil || self.isStalled == report.isStalled,
            Self.holds(self.listeners, report.listener), Self.holds(self.routes, report.route),
            Self.holds(self.upstreams, report.upstream) || Self.holds(self.upstreams, report.endpoint)
        else { return false }
        return self.matchesPeer(report) && self.matchesTimes(report)
            && self.labels.allSatisfy { $0.matches(report.labels) }
    }

    private static func holds(_ wanted: Set<String>, _ value: String?) -> Bool {
        wanted.isEmpty || value.map { wanted.contains($0) } == true
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

/// In which order connections are listed.
package struct ConnectionSort: Sendable, Equatable {
    package enum Criterion: String, CaseIterable, Sendable {
        /// The order in which they came about on their loop.
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
            throw ControlProblem(
                400, "invalid-parameter", "sort must be one of \(known), with - before it for the largest first."
            )
            .at(parameter: "sort")
        }
        self.criterion = criterion
    }

    /// Whether a page can begin behind any connection without a snapshot of the whole list: what is sorted by never
    /// changes.
    package var isStable: Bool { self.criterion == .id && !self.isDescending }

    /// What is compared; `id` is compared by the name itself.
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

    /// The names in order; equal ones by name.
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

/// Where a page begins. Opaque to clients.
package enum PageCursor: Sendable, Equatable {
    /// Behind this connection, in the order of names.
    case after(ConnectionKey)
    /// At this place of a list that is kept.
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
                400, "invalid-cursor", "The cursor is none that was given out; begin without one."
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

/// Some of many reports, in an order. They are large: they stay where the loops put them, and only places are moved.
struct ReportSelection: Sendable {
    private struct Place {
        let key: ConnectionKey
        let part: Int
        let index: Int
    }

    private var parts: [[ConnectionReport]] = []
    private var places: [Place] = []

    init() {}

    /// All of them, in their order.
    init(_ reports: [ConnectionReport]) {
        self.add(reports) { _ in true }
    }

    var count: Int { self.places.count }

    var keys: some RandomAccessCollection<ConnectionKey> { self.places.lazy.map(\.key) }

    /// Adds those that are meant behind what is there.
    mutating func add(_ reports: [ConnectionReport], where isMeant: (borrowing ConnectionReport) -> Bool) {
        let span = reports.span
        for index in span.indices where isMeant(span[index]) {
            self.places.append(Place(key: span[index].key, part: self.parts.count, index: index))
        }
        self.parts.append(reports)
    }

    /// By key.
    mutating func sortByKey() {
        let places = self.places
        // Those of one loop are in order already.
        guard zip(places, places.dropFirst()).contains(where: { $1.key < $0.key }) else { return }
        self.places.sort { $0.key < $1.key }
    }

    mutating func truncate(to count: Int) {
        self.places.removeLast(max(0, self.places.count - count))
    }

    func withEach(_ body: (borrowing ConnectionReport) -> Void) {
        for place in self.places {
            let part = self.parts[place.part]
            let reports = part.span
            body(reports[place.index])
        }
    }
}

/// The order of lists that are being paged through by something that changes: without it a connection could move from a
/// page that is still to come to one that was seen. Bounded: the list that was used least recently makes room.
package final class ListSnapshots: Sendable {
    package static let limit = 16
    /// Names in all lists together.
    package static let keyLimit = 1_000_000

    private struct Kept {
        let number: UInt64
        let keys: [ConnectionKey]
    }

    /// The least recently used first.
    private let lists = Mutex<[Kept]>([])

    package init() {}

    package func store(_ keys: [ConnectionKey]) -> UInt64 {
        let number = Machine.randomWords(1).first ?? 0
        self.lists.withLock { lists in
            lists.append(Kept(number: number, keys: keys))
            while lists.count > 1, lists.count > Self.limit || lists.reduce(0, { $0 + $1.keys.count }) > Self.keyLimit {
                lists.removeFirst()
            }
        }
        return number
    }

    /// `nil` if it is not kept any more.
    package func keys(_ number: UInt64) -> [ConnectionKey]? {
        self.lists.withLock { lists in
            guard let index = lists.firstIndex(where: { $0.number == number }) else { return nil }
            let kept = lists.remove(at: index)
            lists.append(kept)
            return kept.keys
        }
    }
}
