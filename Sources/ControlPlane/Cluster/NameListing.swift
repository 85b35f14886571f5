import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore

/// An entry of a list in the order of names, of which several nodes may have a part each.
protocol NamedEntry: ControlModel {
    var name: String { get }

    /// The entry as the nodes together have it.
    /// - Returns: `nil` without entries.
    init?(merging entries: [Self])
}

/// Lists what several nodes have in the order of names, page by page. Entries of one name become one.
struct NameListing<Entry: NamedEntry>: Sendable {
    private struct Page: Decodable {
        let items: [Entry]
        let next: String?
    }

    let nodes: NodeCaller
    let call: ControlCall
    let path: String
    let limit: Int
    /// Query parameters that each node gets.
    let forwarded: Set<String>
    /// Whether an entry that was merged is listed.
    var isWanted: @Sendable (Entry) -> Bool = { _ in true }
    /// This node's page.
    let own: @Sendable (ControlCall) async throws -> Response

    func response() async throws -> Response {
        let selected = try await ClusterOperations.selected(self.call.query, self.nodes)
        let deadline = ContinuousClock.now.advanced(by: self.nodes.cluster.limits.gatherTimeout)
        var items: [Entry] = []
        var silent: Set<String> = []
        var position = try self.call.query.value("cursor")
        var hasMore = true
        while hasMore, items.count <= self.limit, items.isEmpty || ContinuousClock.now < deadline {
            let pages = try await self.pages(selected.filter { !silent.contains($0) }, after: position)
            silent.formUnion(pages.filter { $0.page == nil }.map(\.node))
            // Beyond the end of a page that is not the last, a node may have more entries.
            let end = pages.compactMap { $0.page?.next == nil ? nil : $0.page?.items.last?.name }.min()
            let found = pages.flatMap { $0.page?.items ?? [] }.filter { entry in end.map { entry.name <= $0 } ?? true }
            items += Dictionary(grouping: found, by: \.name).sorted { $0.key < $1.key }
                .compactMap { Entry(merging: $0.value) }.filter(self.isWanted)
            hasMore = end != nil
            position = end ?? position
            if items.isEmpty, ContinuousClock.now >= deadline { break }
        }
        let isCut = items.count > self.limit
        let last = isCut ? items[self.limit - 1].name : hasMore ? position : nil
        return .page(
            items.prefix(self.limit).map { JSONBody.encode($0) },
            next: last.map { self.call.query.nextPage(of: self.path, cursor: $0) }, unreachable: silent.sorted())
    }

    /// A page of each node; `nil` for a node that did not answer.
    private func pages(_ selected: [String], after position: String?) async throws -> [(node: String, page: Page?)] {
        var pairs = self.call.query.pairs.filter { self.forwarded.contains($0.name) }
        pairs.append((name: "limit", value: "\(self.limit)"))
        if let position { pairs.append((name: "cursor", value: position)) }
        let query = Query(pairs: pairs)
        let request = NodeRequest(self.call, target: query.target(of: self.path))
        async let outcomes = self.nodes.gather(
            from: selected.filter { $0 != self.nodes.own }, timeout: self.nodes.cluster.limits.gatherTimeout
        ) { _ in request }
        var pages: [(node: String, page: Page?)] = []
        if selected.contains(self.nodes.own) {
            var call = self.call
            call.query = query
            let own = NodeReply(try await BufferedResponse(try await self.own(call)))
            pages.append((self.nodes.own, own.decoded(Page.self)))
        }
        for outcome in await outcomes {
            guard case .success(let reply) = outcome.result, reply.isSuccess else {
                pages.append((outcome.node, nil))
                continue
            }
            pages.append((outcome.node, reply.decoded(Page.self)))
        }
        return pages
    }
}

extension Response {
    /// A page of a list.
    /// - Parameters:
    ///   - items: JSON objects.
    ///   - next: path and query of the next page.
    ///   - unreachable: names of nodes that did not answer.
    static func page(_ items: [[UInt8]], next: String?, unreachable: [String] = []) -> Response {
        var text = JSONText(capacity: items.reduce(512) { $0 + $1.count + 1 })
        text.beginObject()
        text.key("items")
        text.beginArray()
        for item in items { text.raw(item) }
        text.endArray()
        text.member("next", next)
        if !unreachable.isEmpty {
            text.key("unreachable")
            text.beginArray()
            for node in unreachable { text.string(node) }
            text.endArray()
        }
        text.endObject()
        return .json(text.bytes, headers: RoomsResource.link(next))
    }
}

// MARK: Entries

extension Room: NamedEntry {
    /// Members are those of all nodes, publications those of the node with the newest position.
    init?(merging rooms: [Room]) {
        guard var merged = rooms.max(by: { ($0.offset ?? 0, $0.publications) < ($1.offset ?? 0, $1.publications) })
        else { return nil }
        merged.members = rooms.map(\.members).sumOfCounts()
        merged.clients = rooms.map(\.clients).sumOfCounts()
        merged.users = rooms.map(\.users).sumOfCounts()
        self = merged
    }
}

extension UserSummary: NamedEntry {
    var name: String { self.id }

    init?(merging users: [UserSummary]) {
        guard var merged = users.first else { return nil }
        let rooms = Set(users.flatMap { $0.rooms ?? [] }).sorted()
        merged.connectionCount = merged.connectionCount.map { _ in users.compactMap(\.connectionCount).sumOfCounts() }
        merged.rooms = merged.rooms.map { _ in Array(rooms.prefix(Self.roomLimit)) }
        merged.hasMoreRooms = merged.hasMoreRooms.map { _ in
            rooms.count > Self.roomLimit || users.contains { $0.hasMoreRooms == true }
        }
        merged.nodes = merged.nodes.map { _ in Set(users.flatMap { $0.nodes ?? [] }).sorted() }
        self = merged
    }
}
