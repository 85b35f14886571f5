import ControlAPI

/// Query for connections, read page by page.
package struct ConnectionListing: Sendable, Equatable {
    /// Maximum number of connections per page.
    package static let pageLimit = 1000

    package var selection: ConnectionSelection
    /// Sort key of the REST interface; `nil` sorts by ID.
    package var sort: String?
    /// Comma-separated names of members; `nil` means all.
    package var fields: String?
    /// Maximum number of connections; `nil` means all.
    package var limit: Int?

    package init(
        _ selection: ConnectionSelection, sort: String? = nil, fields: String? = nil, limit: Int? = nil
    ) {
        self.selection = selection
        self.sort = sort
        self.fields = fields
        self.limit = limit
    }

    /// Request for the first page, with at most `count` connections.
    package func request(count: Int) -> ControlRequest {
        var parameters = self.selection.parameters
        if let sort { parameters.append(ControlRequest.Parameter("sort", sort)) }
        if let fields { parameters.append(ControlRequest.Parameter("fields", fields)) }
        parameters.append(ControlRequest.Parameter("limit", "\(min(count, Self.pageLimit))"))
        return ControlRequest(.get, ConnectionPath.all, parameters)
    }

    package func pages(of session: ControlSession) -> Pages {
        Pages(session: session, next: self.request(count: self.limit ?? Self.pageLimit), remaining: self.limit ?? .max)
    }

    /// Reads pages one after the other.
    package struct Pages {
        let session: ControlSession
        var next: ControlRequest?
        var remaining: Int

        /// - Returns: `nil` after the last page.
        package mutating func next() async throws(ControlFailure) -> (ControlResponse, ConnectionPage)? {
            guard let request = self.next, self.remaining > 0 else { return nil }
            let answer = try await self.session.send(request)
            let page = try answer.decoded(ConnectionPage.self)
            self.remaining -= page.items.count
            self.next = page.next.map { ControlRequest(.get, Self.bounded($0, count: self.remaining)) }
            return (answer, page)
        }

        /// Path of the next page, with its limit reduced to `count`.
        package static func bounded(_ path: String, count: Int) -> String {
            guard let mark = path.firstIndex(of: "?") else { return path }
            let query = path[path.index(after: mark)...].split(separator: "&").map { piece in
                guard piece.hasPrefix("limit="), let limit = Int(piece.dropFirst(6)) else { return String(piece) }
                return "limit=\(min(limit, max(1, count)))"
            }
            return path[...mark] + query.joined(separator: "&")
        }
    }
}

/// Criteria for selecting connections; empty or `nil` ones are ignored. The gateway validates the values.
package struct ConnectionSelection: Sendable, Equatable {
    package var ids: [String] = []
    package var kinds: [String] = []
    package var states: [String] = []
    package var direction: String?
    package var listeners: [String] = []
    package var routes: [String] = []
    package var upstreams: [String] = []
    package var peers: [String] = []
    package var users: [String] = []
    /// `NAME` or `NAME=VALUE`.
    package var labels: [String] = []
    package var minimumAge: Duration?
    package var maximumAge: Duration?
    package var minimumIdle: Duration?
    package var isStalled = false
    /// Nodes of a cluster.
    package var nodes: [String] = []

    package init() {}

    package var isEmpty: Bool { self == ConnectionSelection() }

    /// Query parameters.
    package var parameters: [ControlRequest.Parameter] {
        let lists = [
            ("id", self.ids), ("kind", self.kinds.map(Self.kind)), ("state", self.states), ("listener", self.listeners),
            ("route", self.routes), ("upstream", self.upstreams), ("peer", self.peers),
            ("user", self.users), ("label", self.labels.map(Self.label)),
            ("direction", self.direction.map { [$0] } ?? []), ("node", self.nodes),
        ]
        let times = [
            ("minAgeMs", self.minimumAge), ("maxAgeMs", self.maximumAge), ("minIdleMs", self.minimumIdle),
        ]
        return lists.flatMap { name, values in values.map { ControlRequest.Parameter(name, $0) } }
            + times.compactMap { name, time in time.map { ControlRequest.Parameter(name, Self.milliseconds($0)) } }
            + (self.isStalled ? [ControlRequest.Parameter("stalled", "true")] : [])
    }

    /// Accepts `ws`, as tables show a WebSocket.
    private static func kind(_ text: String) -> String {
        ["ws", "websocket"].contains(text.lowercased()) ? "webSocket" : text
    }

    /// The REST interface separates name and value with a colon, which label names cannot contain.
    private static func label(_ text: String) -> String {
        guard let mark = text.firstIndex(of: "=") else { return text }
        return "\(text[..<mark]):\(text[text.index(after: mark)...])"
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(Int(duration / .milliseconds(1)))"
    }
}

/// Paths of connections in the REST interface.
package enum ConnectionPath {
    package static let all = "/v1/connections"

    package static func connection(_ id: String) -> String {
        "\(self.all)/\(ControlRequest.segment(id))"
    }

    /// - Parameter action: custom method, like `send`.
    package static func action(_ action: String, _ id: String) -> String {
        "\(self.connection(id)):\(action)"
    }
}
