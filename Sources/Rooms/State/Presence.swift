/// The clients in one room, by connection.
package struct Presence: Sendable {
    private var clients: [String: ClientInfo] = [:]
    /// Connections of each user.
    private var connections: [String: Int] = [:]

    package init() {}

    package var clientCount: Int { self.clients.count }
    package var userCount: Int { self.connections.count }
    package var isEmpty: Bool { self.clients.isEmpty }

    /// In the order of their identifiers.
    package var all: [ClientInfo] { self.clients.values.sorted { $0.client < $1.client } }

    /// In the order of their identifiers; `nil` if they take more than `limit` bytes in a reply.
    package func all(upTo limit: Int) -> [ClientInfo]? {
        var size = 0
        for info in self.clients.values {
            size += info.estimatedSize
            guard size <= limit else { return nil }
        }
        return self.all
    }

    /// Identifiers of the clients, in no order.
    package var identifiers: [String] { Array(self.clients.keys) }

    package subscript(client: String) -> ClientInfo? { self.clients[client] }

    package func contains(client: String) -> Bool { self.clients[client] != nil }
    package func contains(user: String) -> Bool { self.connections[user] != nil }

    package mutating func add(_ info: ClientInfo) {
        if let former = self.clients.updateValue(info, forKey: info.client) { self.count(former.user, -1) }
        self.count(info.user, 1)
    }

    package mutating func remove(client: String) -> ClientInfo? {
        guard let info = self.clients.removeValue(forKey: client) else { return nil }
        self.count(info.user, -1)
        return info
    }

    private mutating func count(_ user: String, _ change: Int) {
        let count = (self.connections[user] ?? 0) + change
        self.connections[user] = count > 0 ? count : nil
    }
}
