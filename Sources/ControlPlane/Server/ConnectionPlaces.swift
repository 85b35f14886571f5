import GatewayCore
import Synchronization

/// Decides which connections the control plane keeps when more come than it has places for.
///
/// A connection that waits for a request, its first or another, gives way: the one that has waited longest is closed. So
/// connections that never ask for anything cannot keep callers out. Where every place is taken by a request that is being
/// carried out, a few more connections are taken for probes alone.
package struct ConnectionPlaces: Sendable {
    /// Connections beyond the limit that may ask for what needs no rights, such as `/livez`.
    package static let probeLimit = 16

    package enum Answer: Hashable, Sendable {
        /// - Parameter closing: the connection that gives way.
        case taken(closing: UInt64?)
        /// As `taken`, for probes alone.
        case takenForProbes(closing: UInt64?)
        /// All connections of this client have requests under way, or all places for probes do.
        case refused
    }

    private struct Entry {
        let client: String?
        let isForProbes: Bool
        var isServing = false
        /// When it came, or was last answered; a higher one is younger.
        var turn: UInt64
    }

    /// Connections at once, without those for probes.
    package var limit: Int
    /// Connections of one address.
    package var clientLimit: Int
    private var entries: [UInt64: Entry] = [:]
    private var clients: [String: Int] = [:]
    private var turn: UInt64 = 0

    package init(limit: Int, clientLimit: Int) {
        self.limit = limit
        self.clientLimit = clientLimit
    }

    package var count: Int { self.entries.count }

    /// A connection was accepted.
    /// - Parameters:
    ///   - identifier: a new one.
    ///   - client: where it comes from; `nil` on a Unix socket, where nobody has an address.
    package mutating func arrived(_ identifier: UInt64, from client: String?) -> Answer {
        if let client, self.clients[client, default: 0] >= self.clientLimit {
            guard let oldest = self.oldestWaiting(where: { $0.client == client && !$0.isForProbes }) else {
                return .refused
            }
            self.replace(oldest, by: identifier, from: client)
            return .taken(closing: oldest)
        }
        if self.entries.count < self.limit {
            self.add(identifier, from: client, isForProbes: false)
            return .taken(closing: nil)
        }
        if let oldest = self.oldestWaiting(where: { !$0.isForProbes }) {
            self.replace(oldest, by: identifier, from: client)
            return .taken(closing: oldest)
        }
        return self.arrivedForProbes(identifier, from: client)
    }

    private mutating func arrivedForProbes(_ identifier: UInt64, from client: String?) -> Answer {
        if self.entries.count < self.limit + Self.probeLimit {
            self.add(identifier, from: client, isForProbes: true)
            return .takenForProbes(closing: nil)
        }
        guard let oldest = self.oldestWaiting(where: { $0.isForProbes }) else { return .refused }
        self.left(oldest)
        self.add(identifier, from: client, isForProbes: true)
        return .takenForProbes(closing: oldest)
    }

    /// A caller with the rights for it has a request carried out on this connection.
    package mutating func began(_ identifier: UInt64) {
        self.entries[identifier]?.isServing = true
    }

    /// The request was answered; the connection waits for another.
    package mutating func answered(_ identifier: UInt64) {
        self.turn += 1
        self.entries[identifier]?.isServing = false
        self.entries[identifier]?.turn = self.turn
    }

    package mutating func left(_ identifier: UInt64) {
        guard let entry = self.entries.removeValue(forKey: identifier), let client = entry.client else { return }
        let others = self.clients[client, default: 1] - 1
        self.clients[client] = others > 0 ? others : nil
    }

    private mutating func add(_ identifier: UInt64, from client: String?, isForProbes: Bool) {
        self.turn += 1
        self.entries[identifier] = Entry(client: client, isForProbes: isForProbes, turn: self.turn)
        if let client { self.clients[client, default: 0] += 1 }
    }

    private mutating func replace(_ former: UInt64, by identifier: UInt64, from client: String?) {
        self.left(former)
        self.add(identifier, from: client, isForProbes: false)
    }

    private func oldestWaiting(where fits: (Entry) -> Bool) -> UInt64? {
        self.entries.filter { !$0.value.isServing && fits($0.value) }.min { $0.value.turn < $1.value.turn }?.key
    }
}
