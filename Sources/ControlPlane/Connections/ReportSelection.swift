import GatewayCore

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
    mutating func putInOrder() {
        let places = self.places
        // Those of one loop are in order already.
        guard zip(places, places.dropFirst()).contains(where: { $1.key < $0.key }) else { return }
        self.places.sort { $0.key < $1.key }
    }

    mutating func keep(first count: Int) {
        self.places.removeLast(max(0, self.places.count - count))
    }

    func visit(_ body: (borrowing ConnectionReport) -> Void) {
        for place in self.places {
            let part = self.parts[place.part]
            let reports = part.span
            body(reports[place.index])
        }
    }
}
