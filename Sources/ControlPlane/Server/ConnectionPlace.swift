/// The place of one connection.
final class ConnectionPlace: Sendable {
    /// The connection is one too many, and may ask for what needs no rights alone.
    let isForProbes: Bool
    private let identifier: UInt64
    private let table: ConnectionTable

    init(_ identifier: UInt64, in table: ConnectionTable, isForProbes: Bool) {
        self.identifier = identifier
        self.table = table
        self.isForProbes = isForProbes
    }

    func began() {
        self.table.began(self.identifier)
    }

    func answered() {
        self.table.answered(self.identifier)
    }
}
