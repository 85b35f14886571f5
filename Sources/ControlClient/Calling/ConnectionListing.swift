import ControlAPI

/// A list of connections, page by page.
package struct ConnectionListing: Sendable, Equatable {
    /// Most that one page has.
    package static let pageLimit = 1000

    package var selection: ConnectionSelection
    /// As the interface has it; `nil`: by id.
    package var sort: String?
    /// Names of members with commas between them; `nil`: all.
    package var fields: String?
    /// `nil`: all that there are.
    package var limit: Int?

    package init(
        _ selection: ConnectionSelection, sort: String? = nil, fields: String? = nil, limit: Int? = nil
    ) {
        self.selection = selection
        self.sort = sort
        self.fields = fields
        self.limit = limit
    }

    /// For at most `count` connections.
    package func request(count: Int) -> ControlRequest {
        var parameters = self.selection.parameters
        if let sort { parameters.append(ControlRequest.Parameter("sort", sort)) }
        if let fields { parameters.append(ControlRequest.Parameter("fields", fields)) }
        parameters.append(ControlRequest.Parameter("limit", "\(min(count, Self.pageLimit))"))
        return ControlRequest(.get, ConnectionPath.all, parameters)
    }

    package func pages(of session: ControlSession) -> Pages {
        Pages(session: session, next: self.request(count: self.limit ?? Self.pageLimit), rest: self.limit ?? .max)
    }

    /// Reads one page after the other.
    package struct Pages {
        let session: ControlSession
        var next: ControlRequest?
        var rest: Int

        /// - Returns: `nil` behind the last one.
        package mutating func next() async throws(ControlFailure) -> (ControlResponse, ConnectionPage)? {
            guard let request = self.next, self.rest > 0 else { return nil }
            let answer = try await self.session.send(request)
            let page = try answer.decoded(ConnectionPage.self)
            self.rest -= page.items.count
            self.next = page.next.map { ControlRequest(.get, Self.bounded($0, count: self.rest)) }
            return (answer, page)
        }

        /// The way to the next page, with no more on it than is still wanted.
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
    /// `NAME` or `NAME=VALUE`.
    package var labels: [String] = []
    package var minimumAge: Duration?
    package var maximumAge: Duration?
    package var minimumIdle: Duration?
    package var isStalled = false

    package init() {}

    package var isEmpty: Bool { self == ConnectionSelection() }

    /// As the query of a request.
    package var parameters: [ControlRequest.Parameter] {
        let lists = [
            ("id", self.ids), ("kind", self.kinds.map(Self.kind)), ("state", self.states), ("listener", self.listeners),
            ("route", self.routes), ("upstream", self.upstreams), ("peer", self.peers),
            ("label", self.labels.map(Self.label)), ("direction", self.direction.map { [$0] } ?? []),
        ]
        let times = [
            ("minAgeMs", self.minimumAge), ("maxAgeMs", self.maximumAge), ("minIdleMs", self.minimumIdle),
        ]
        return lists.flatMap { name, values in values.map { ControlRequest.Parameter(name, $0) } }
            + times.compactMap { name, time in time.map { ControlRequest.Parameter(name, Self.milliseconds($0)) } }
            + (self.isStalled ? [ControlRequest.Parameter("stalled", "true")] : [])
    }

    /// Tables show a WebSocket as `ws`.
    private static func kind(_ text: String) -> String {
        ["ws", "websocket"].contains(text.lowercased()) ? "webSocket" : text
    }

    /// The interface writes a label with a colon, since its names have none.
    private static func label(_ text: String) -> String {
        guard let mark = text.firstIndex(of: "=") else { return text }
        return "\(text[..<mark]):\(text[text.index(after: mark)...])"
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(Int(duration / .milliseconds(1)))"
    }
}

/// Paths of the resource that is every connection.
package enum ConnectionPath {
    package static let all = "/v1/connections"

    package static func one(_ id: String) -> String {
        "\(self.all)/\(ControlRequest.segment(id))"
    }

    /// - Parameter verb: as `send`.
    package static func verb(_ verb: String, _ id: String) -> String {
        "\(self.one(id)):\(verb)"
    }
}
