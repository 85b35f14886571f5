import Synchronization

/// The clients of the rooms' protocol by connection and by user, on all loops.
package final class UserRegistry: Sendable {
    package struct Entry: Sendable, Hashable {
        /// Identifies the connection to other clients.
        package let client: String
        /// Empty for an anonymous user.
        package let user: String
        /// Number of the connection in the REST interface.
        package let connection: UInt64
        let loop: Int
    }

    private struct State {
        var entries: [String: Entry] = [:]
        /// Clients of users that have a name.
        var clients: [String: Set<String>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameter limit: connections of one user; `nil` is unlimited.
    /// - Returns: whether the user may have one more connection.
    func add(_ entry: Entry, limit: Int?) -> Bool {
        self.state.withLock { state in
            if !entry.user.isEmpty {
                if let limit, state.clients[entry.user]?.count ?? 0 >= limit { return false }
                state.clients[entry.user, default: []].insert(entry.client)
            }
            state.entries[entry.client] = entry
            return true
        }
    }

    func remove(client: String) {
        self.state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: client), !entry.user.isEmpty else { return }
            state.clients[entry.user]?.remove(client)
            if state.clients[entry.user]?.isEmpty == true { state.clients[entry.user] = nil }
        }
    }

    package func entry(client: String) -> Entry? { self.state.withLock { $0.entries[client] } }

    /// The user's connections, in the order of their numbers.
    package func entries(user: String) -> [Entry] {
        self.state.withLock { state in
            (state.clients[user] ?? []).compactMap { state.entries[$0] }.sorted { $0.connection < $1.connection }
        }
    }

    /// All connections, in the order of their numbers.
    package var entries: [Entry] {
        self.state.withLock { Array($0.entries.values) }.sorted { $0.connection < $1.connection }
    }

    /// Names of the users, in no order.
    var names: [String] { self.state.withLock { Array($0.clients.keys) } }

    /// Connections, and users with a name.
    package var counts: (clients: Int, users: Int) {
        self.state.withLock { ($0.entries.count, $0.clients.count) }
    }
}
