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
        var found = ReportSelection()
        if self.filter.wantsClosed { found.add(await self.gateway.closedReports()) { self.isMeant($0, behind: key) } }
        let closed = Set(found.keys)
        var rest = self.filter.wantsOnlyClosed ? [] : await self.gateway.liveNumbers(from: key?.number ?? 0)[...]
        // One more than fits tells that there are more, and the first may be what the page is behind.
        while !rest.isEmpty {
            let turn = rest.prefix(max(256, self.limit + 2))
            rest = rest.dropFirst(turn.count)
            for reports in await self.gateway.reports(of: Array(turn)) {
                found.add(reports) { !closed.contains($0.key) && self.isMeant($0, behind: key) }
            }
            found.putInOrder()
            // Only what stands before the first that was not looked at is settled.
            if let first = rest.first, let extra = found.keys.dropFirst(self.limit).first, extra.number < first {
                break
            }
        }
        found.putInOrder()
        let hasMore = found.count > self.limit
        found.keep(first: self.limit)
        return Page(reports: found, next: hasMore ? found.keys.last.map { .after($0) } : nil)
    }

    private func isMeant(_ report: borrowing ConnectionReport, behind key: ConnectionKey?) -> Bool {
        if let key, report.key <= key { return false }
        return self.filter.matches(report)
    }

    /// Everything that matches.
    func all() async -> [ConnectionReport] {
        var found: [ConnectionReport] = []
        if self.filter.wantsClosed { found = await self.gateway.closedReports().filter(self.filter.matches) }
        guard !self.filter.wantsOnlyClosed else { return found }
        let closed = Set(found.map(\.key))
        let live = await self.gateway.reports(of: await self.gateway.liveNumbers())
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
        let next = end < keys.count ? PageCursor.kept(snapshot: number, offset: end) : nil
        return Page(reports: ReportSelection(wanted.compactMap { byKey[$0] }), next: next)
    }
}
