import GatewayCore

/// One page of connections.
struct ConnectionList: Sendable {
    static let standardLimit = 100
    static let largestLimit = 1000

    let gateway: Gateway
    let filter: ConnectionFilter
    let sort: ConnectionSort
    let limit: Int
    let kept: KeptLists

    struct Page: Sendable {
        let reports: [ConnectionReport]
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
            return await self.page(keys, from: 0, number: self.kept.keep(keys))
        case .kept(let number, let offset)?:
            guard let keys = self.kept.keys(number) else {
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
        var found: [ConnectionReport] = []
        if self.filter.wantsClosed {
            found = await self.gateway.closedReports().filter { Self.isBehind(key, $0) && self.filter.matches($0) }
        }
        found.putInOrder()
        let closed = Set(found.map(\.key))
        var rest = self.filter.wantsOnlyClosed ? [] : await self.gateway.liveNumbers(from: key?.number ?? 0)[...]
        // A few more than fit, as some of them do not match or are two.
        while !rest.isEmpty {
            let turn = rest.prefix(max(256, self.limit))
            rest = rest.dropFirst(turn.count)
            var live = await self.gateway.reports(of: Array(turn))
            live.removeAll { report in
                !Self.isBehind(key, report) || closed.contains(report.key) || !self.filter.matches(report)
            }
            if found.isEmpty { found = live } else { found += live }
            found.putInOrder()
            // Only what stands before the first that was not looked at is settled.
            if let first = rest.first, found.prefix(self.limit + 1).count > self.limit,
                found[self.limit].key.number < first
            {
                break
            }
        }
        let hasMore = found.count > self.limit
        if hasMore { found.removeLast(found.count - self.limit) }
        return Page(reports: found, next: hasMore ? found.last.map { .after($0.key) } : nil)
    }

    private static func isBehind(_ key: ConnectionKey?, _ report: ConnectionReport) -> Bool {
        key.map { $0 < report.key } ?? true
    }

    /// Everything that matches.
    func all() async -> [ConnectionReport] {
        var found: [ConnectionReport] = []
        if self.filter.wantsClosed { found = await self.gateway.closedReports().filter(self.filter.matches) }
        guard !self.filter.wantsOnlyClosed else { return found }
        let closed = Set(found.map(\.key))
        let live = await self.gateway.reports(of: await self.gateway.liveNumbers())
        return found + live.filter { !closed.contains($0.key) && self.filter.matches($0) }
    }

    /// A part of a list that was put in order before. What ended meanwhile is shown closed, if it is remembered.
    private func page(_ keys: [ConnectionKey], from offset: Int, number: UInt64) async -> Page {
        let wanted = keys.dropFirst(offset).prefix(self.limit)
        let live = await self.gateway.reports(of: Set(wanted.map(\.number)).sorted())
        var byKey = Dictionary(live.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        if wanted.contains(where: { byKey[$0] == nil }) {
            for report in await self.gateway.closedReports() where byKey[report.key] == nil {
                byKey[report.key] = report
            }
        }
        let end = offset + wanted.count
        let next = end < keys.count ? PageCursor.kept(snapshot: number, offset: end) : nil
        return Page(reports: wanted.compactMap { byKey[$0] }, next: next)
    }
}

extension [ConnectionReport] {
    /// By key. Reports are large: most come in order, and the others are moved once.
    fileprivate mutating func putInOrder() {
        guard self.indices.dropFirst().contains(where: { self[$0].key < self[$0 - 1].key }) else { return }
        let order = self.indices.sorted { self[$0].key < self[$1].key }
        self = order.map { self[$0] }
    }
}
