/// Phase of a requested connection until it is open, or failed to open. The request may be cancelled in each of them.
package enum PendingOpening<Connection> {
    /// The connection has not been made yet.
    case beginning
    case opening(Connection)
    /// Cancelled before the connection was made.
    case cancelled
    /// Open, failed, or abandoned.
    case over

    /// The connection was made; it may have opened or failed already.
    /// - Returns: the connection if it must be abandoned.
    package mutating func began(_ connection: Connection) -> Connection? {
        switch self {
        case .beginning:
            self = .opening(connection)
            return nil
        case .cancelled:
            self = .over
            return connection
        case .opening, .over:
            return nil
        }
    }

    /// The connection is open, or failed to open.
    package mutating func completed() {
        self = .over
    }

    /// The request is cancelled.
    /// - Returns: the connection if it must be abandoned.
    package mutating func cancelled() -> Connection? {
        switch self {
        case .beginning:
            self = .cancelled
            return nil
        case .opening(let connection):
            self = .over
            return connection
        case .cancelled, .over:
            return nil
        }
    }
}
