import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import WireText

/// Lists what several nodes have, page by page.
struct NodeListing: Sendable {
    /// Nodes asked at the same time, where the nodes' lists follow one another.
    private static let nodesAtATime = 8

    let nodes: NodeCaller
    let call: ControlCall
    /// The path of the list, for the next page.
    let path: String
    let limit: Int
    /// Whether the list of one node follows that of another; otherwise they are merged by value.
    var isByNode = true
    var isDescending = false
    /// The query parameter with ids: each node gets its own.
    var idParameter: String?
    /// Makes this node's part of a page.
    let own: @Sendable (Query) async throws -> NodePage

    private struct Part: Sendable {
        let start: NodeCursor.Start
        /// `nil` if the node did not answer.
        let page: NodePage?
    }

    func response() async throws -> Response {
        let selected = try await ClusterOperations.selected(self.call.query, self.nodes).filter(self.isWanted)
        let cursor = try self.call.query.value("cursor").map { (text) throws(ControlProblem) in try NodeCursor(text) }
        if let cursor, cursor.includesLaterNodes != self.isByNode {
            throw ControlProblem(400, "invalid-cursor", "The cursor belongs to a list in another order.")
                .at(parameter: "cursor")
        }
        let starts = cursor?.starts(of: selected) ?? selected.map { NodeCursor.Start($0) }
        return self.isByNode ? try await self.pageByNode(starts) : try await self.mergedPage(starts)
    }

    // MARK: Pages

    private func pageByNode(_ starts: [NodeCursor.Start]) async throws -> Response {
        let deadline = ContinuousClock.now.advanced(by: self.nodes.cluster.limits.gatherTimeout)
        var items: [[UInt8]] = []
        var unreachable: [String] = []
        var rest = starts[...]
        while !rest.isEmpty, items.count < self.limit {
            // The first wave is always asked, so that each page makes progress.
            guard rest.count == starts.count || ContinuousClock.now < deadline else { break }
            let wave = rest.prefix(Self.nodesAtATime)
            for part in try await self.parts(Array(wave), limit: self.limit - items.count) {
                guard items.count < self.limit else { break }
                guard let page = part.page else {
                    unreachable.append(part.start.node)
                    rest = rest.dropFirst()
                    continue
                }
                let taken = page.items.prefix(self.limit - items.count)
                items += taken
                guard taken.count == page.items.count, !page.hasMore else {
                    let goesOn = NodeCursor.Start(part.start.node, page.cursors[taken.count - 1])
                    return self.response(items, next: NodeCursor(includesLaterNodes: true, [goesOn]), unreachable)
                }
                rest = rest.dropFirst()
            }
        }
        let next = rest.first.map { NodeCursor(includesLaterNodes: true, [$0]) }
        return self.response(items, next: next, unreachable)
    }

    private func mergedPage(_ starts: [NodeCursor.Start]) async throws -> Response {
        let parts = try await self.parts(starts, limit: self.limit)
        let answered = parts.compactMap { part in part.page.map { (start: part.start, page: $0) } }
        let merged = MergedPage(answered, limit: self.limit, isDescending: self.isDescending)
        return self.response(
            merged.items, next: merged.next.isEmpty ? nil : NodeCursor(includesLaterNodes: false, merged.next),
            parts.filter { $0.page == nil }.map(\.start.node))
    }

    private func response(_ items: [[UInt8]], next: NodeCursor?, _ unreachable: [String]) -> Response {
        let path = next.map { self.call.query.nextPage(of: self.path, cursor: $0.text) }
        return .page(items, next: path, unreachable: unreachable)
    }

    // MARK: Parts

    /// Gets a page of each node at the same time.
    private func parts(_ starts: [NodeCursor.Start], limit: Int) async throws -> [Part] {
        let byNode = Dictionary(starts.map { ($0.node, $0.cursor) }, uniquingKeysWith: { first, _ in first })
        let request = NodeRequest(self.call)
        async let outcomes = self.nodes.gather(
            from: starts.map(\.node).filter { $0 != self.nodes.own },
            timeout: self.nodes.cluster.limits.gatherTimeout
        ) { [self] node in
            var request = request
            request.target = self.query(for: node, cursor: byNode[node] ?? nil, limit: limit).target(of: self.path)
            return request
        }
        var own: NodePage?
        if let start = starts.first(where: { $0.node == self.nodes.own }) {
            own = try await self.own(self.query(for: start.node, cursor: start.cursor, limit: limit))
        }
        let answers = await outcomes
        return try starts.map { start in
            if start.node == self.nodes.own { return Part(start: start, page: own) }
            guard let outcome = answers.first(where: { $0.node == start.node }) else {
                return Part(start: start, page: nil)
            }
            return Part(start: start, page: try Self.page(outcome))
        }
    }

    /// - Returns: `nil` if the node did not answer.
    /// - Throws: `ControlProblem` 410 for a cursor that has expired on the node.
    private static func page(_ outcome: NodeCaller.Outcome) throws(ControlProblem) -> NodePage? {
        guard case .success(let reply) = outcome.result else { return nil }
        if reply.status == 410 {
            throw ControlProblem(410, "cursor-expired", "The cursor has expired; start again without one.")
                .at(parameter: "cursor")
        }
        return reply.isSuccess ? NodePage(reply.body) : nil
    }

    // MARK: Queries

    /// The ids of the query that belong to a node; `nil` if the query has none.
    private func ids(of node: String) -> [String]? {
        guard let name = self.idParameter else { return nil }
        let ids = self.call.query.list(name).map(ClusterOperations.parts)
        return ids.isEmpty ? nil : ids.filter { ($0.node ?? self.nodes.own) == node }.map(\.id)
    }

    private func isWanted(_ node: String) -> Bool { self.ids(of: node) != [] }

    /// The query that a node gets.
    private func query(for node: String, cursor: String?, limit: Int) -> Query {
        let replaced = Set(["node", "cursor", "limit", self.idParameter].compactMap(\.self))
        var pairs = self.call.query.pairs.filter { !replaced.contains($0.name) }
        if let name = self.idParameter { pairs += (self.ids(of: node) ?? []).map { (name: name, value: $0) } }
        pairs.append((name: "limit", value: "\(limit)"))
        if let cursor { pairs.append((name: "cursor", value: cursor)) }
        return Query(pairs: pairs)
    }
}

extension Query {
    /// Path and query.
    func target(of path: String) -> String {
        let text = self.pairs.map { "\(PercentCoding.encoded($0.name))=\(PercentCoding.encoded($0.value))" }
        return text.isEmpty ? path : "\(path)?\(text.joined(separator: "&"))"
    }
}

// MARK: Connections

extension ConnectionsResource {
    /// Lists the connections of several nodes; for another node, the part of this one.
    func list(_ call: ControlCall, on nodes: NodeCaller) async throws -> Response {
        guard call.forwardedBy == nil else { return .json(try await self.part(call.query).encoded) }
        let sort = try ConnectionSort(call.query)
        let limit = try call.query.integer("limit", in: 1...ConnectionList.maximumLimit)
        let list = NodeListing(
            nodes: nodes, call: call, path: "/v1/connections", limit: limit ?? ConnectionList.defaultLimit,
            isByNode: sort.isStable, isDescending: sort.isDescending, idParameter: "id",
            own: { try await self.part($0) })
        // Other nodes would refuse an invalid query too, but not say so.
        _ = try ConnectionFilter(Query(pairs: call.query.pairs.filter { $0.name != "id" }))
        _ = try ConnectionWriter.fields(call.query)
        for id in call.query.list("id") where ConnectionKey(ClusterOperations.parts(of: id).id) == nil {
            throw ControlProblem.invalid(parameter: "id", "id must be the id of a connection.")
        }
        return try await list.response()
    }

    /// This node's part of a page.
    private func part(_ query: Query) async throws -> NodePage {
        let limit = try query.integer("limit", in: 1...ConnectionList.maximumLimit) ?? ConnectionList.defaultLimit
        let sort = try ConnectionSort(query)
        let list = ConnectionList(
            gateway: self.gateway, filter: try ConnectionFilter(query), sort: sort, limit: limit,
            snapshots: self.snapshots, keepsShortLists: true)
        let cursor = try query.value("cursor").map { (text) throws(ControlProblem) in try PageCursor(text) }
        let writer = self.context.connectionWriter(fields: try ConnectionWriter.fields(query))
        var found = try await list.page(cursor)
        // A whole page of a snapshot may be of connections that are gone.
        while found.reports.count == 0, let next = found.next { found = try await list.page(next) }
        var part = NodePage()
        var bytes = 0
        var cursors = found.cursors[...]
        found.reports.withEach { report in
            guard let cursor = cursors.popFirst(), bytes < NodePage.byteLimit else {
                part.hasMore = true
                return
            }
            let item = writer.json(report)
            bytes += item.count
            part.append(item, value: sort.value(report), cursor: cursor.text)
        }
        part.hasMore = part.hasMore || found.next != nil
        return part
    }
}

// MARK: Rooms

extension RoomsResource {
    /// Lists the rooms of several nodes, those with one name as one room.
    func list(_ call: ControlCall, on nodes: NodeCaller) async throws -> Response {
        let limit = try call.query.integer("limit", in: 1...Self.maximumRoomsPerPage) ?? Self.roomsPerPage
        let least = try call.query.integer("minMembers", in: 0...100_000_000) ?? 0
        let list = NameListing<Room>(
            nodes: nodes, call: call, path: "/v1/rooms", limit: limit, forwarded: ["pattern"],
            isWanted: { $0.members >= least }, own: { try self.listOwn($0) })
        return try await list.response()
    }

    /// Lists the members of a room on several nodes; for another node, the part of this one.
    func members(_ call: ControlCall, on nodes: NodeCaller) async throws -> Response {
        let name = Self.name(call)
        guard call.forwardedBy == nil else { return .json(try await self.part(of: name, call.query).encoded) }
        let limit = try call.query.integer("limit", in: 1...Self.maximumRoomsPerPage) ?? Self.roomsPerPage
        let list = NodeListing(
            nodes: nodes, call: call, path: "\(Self.path(name))/members", limit: limit,
            own: { try await self.part(of: name, $0) })
        let response = try await BufferedResponse(try await list.response())
        // A room exists if a node has it, with or without members.
        guard response.body.starts(with: Array(#"{"items":[]"#.utf8)), try call.query.value("cursor") == nil,
            self.hub.acquireExisting(name).map(self.hub.release) == nil
        else { return response.response }
        throw ControlProblem(
            404, "unknown-room", "The room \(name.prefix(64)) has no members and keeps no publications.")
    }

    /// This node's part of a page of members; empty for a room that the node does not have.
    private func part(of name: String, _ query: Query) async throws -> NodePage {
        let limit = try query.integer("limit", in: 1...Self.maximumRoomsPerPage) ?? Self.roomsPerPage
        let position = try Self.memberPosition(query)
        let members = await self.rooms.members(of: name, after: position, limit: limit + 1)
        var part = NodePage()
        var bytes = 0
        for member in members.prefix(limit) {
            guard bytes < NodePage.byteLimit else { break }
            var text = JSONText(capacity: 256)
            self.write(member, to: &text)
            bytes += text.bytes.count
            part.append(text.bytes, cursor: member.position.text)
        }
        part.hasMore = part.items.count < members.count
        return part
    }
}
