import Rooms
import StreamTransport
import Synchronization

/// Identity of a client in its limits: the user, on all connections; without a name the address.
package enum RoomClientKey: Hashable, Sendable {
    case user(String)
    case address(ClientKey)

    /// `nil` for a client without a name on a Unix socket, which has no limits of this kind.
    /// - Parameter user: empty for a client without a name.
    package init?(user: String, address: SocketAddress?) {
        if !user.isEmpty {
            self = .user(user)
        } else if let address = address?.ipAddress {
            self = .address(ClientKey(address))
        } else {
            return nil
        }
    }
}

/// What clients have used up of their rates, beyond the end of a connection: a client that opens a connection for each
/// message may not send more than one that stays.
package final class ClientRates: Sendable {
    /// Clients that have used up some of their rates, above which the meters of all are reset.
    package static let limit = 65_536

    private let table = Mutex<[RoomClientKey: RoomMeters]>([:])

    package init() {}

    /// Clients in the table; those whose meters are full again are removed when the table is full.
    package var count: Int { self.table.withLock(\.count) }

    /// Runs `body`, which must not wait, with the client's meters.
    package func use(_ client: RoomClientKey, at now: Duration, _ body: (inout RoomMeters) -> Void) {
        self.table.withLock { table in
            if table[client] == nil, table.count >= Self.limit {
                table = table.filter { !$0.value.isUnused(at: now) }
                // Otherwise almost every further client would cause a search of the whole table.
                if table.count > Self.limit / 2 { table = [:] }
            }
            var meters = table[client] ?? RoomMeters()
            body(&meters)
            table[client] = meters.isUnused(at: now) ? nil : meters
        }
    }

    /// Meters of the client's publications so far; `nil` if none counts.
    package func meters(of client: RoomClientKey) -> RoomMeters? { self.table.withLock { $0[client] } }
}
