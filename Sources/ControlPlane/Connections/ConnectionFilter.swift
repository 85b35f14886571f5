import GatewayCore
import SessionTasks
import StreamTransport

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

        package func isAmong(_ labels: [String: String]) -> Bool {
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
                throw ControlProblem(400, "invalid-parameter", "\(name) is to be \(expected).").at(parameter: name)
            }
            values.insert(value)
        }
        return values
    }

    /// Whether it says nothing: then it means everything that lives.
    package var isEmpty: Bool { self == ConnectionFilter() }

    package var wantsClosed: Bool { self.stages.contains(.closed) }
    /// Whether nothing alive can be meant.
    package var wantsOnlyClosed: Bool { self.stages == [.closed] }

    package func matches(_ report: borrowing ConnectionReport) -> Bool {
        guard self.stages.isEmpty ? report.stage != .closed : self.stages.contains(report.stage),
            self.keys.isEmpty || self.keys.contains(report.key), self.kinds.isEmpty || self.kinds.contains(report.kind),
            self.isAccepted == nil || self.isAccepted == report.isAccepted,
            self.isStalled == nil || self.isStalled == report.isStalled,
            Self.holds(self.listeners, report.listener), Self.holds(self.routes, report.route),
            Self.holds(self.upstreams, report.upstream) || Self.holds(self.upstreams, report.endpoint)
        else { return false }
        return self.matchesPeer(report) && self.matchesTimes(report)
            && self.labels.allSatisfy { $0.isAmong(report.labels) }
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
