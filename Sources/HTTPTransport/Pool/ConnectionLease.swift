import Synchronization

/// Keeps one connection between the exchanges of an authentication that the connection itself takes part in, as NTLM
/// and some forms of Negotiate do (RFC 4559 §5). Others cannot use the connection meanwhile.
///
/// Confined to the pool's loop. Every exchange on the lease must have ended or been abandoned before the next one starts.
package final class ConnectionLease: @unchecked Sendable {  // Its vars are used on the pool's loop only.
    private enum State {
        /// No exchange has a connection yet, or the connection was lost.
        case none
        /// The next exchange waits until the current one has been read to its end.
        case busy(HTTPConnection, next: Exchange?)
        case held(HTTPConnection)
        /// The connection is the pool's, as any other.
        case released
        /// The connection is closed as soon as its exchange has ended.
        case discarded
    }

    private var state = State.none

    package init() {}

    /// Whether the connection of the latest exchange is still there.
    package var hasConnection: Bool {
        switch self.state {
        case .busy, .held: true
        case .none, .released, .discarded: false
        }
    }

    /// The handshake is over: the connection goes back to the pool.
    package func release() {
        let state = self.state
        self.state = .released
        guard case .held(let connection) = state else { return }
        connection.lease = nil
        connection.pool.release(connection)
    }

    /// The handshake has failed: the connection is not used again.
    package func discard() {
        let state = self.state
        self.state = .discarded
        guard case .held(let connection) = state else { return }
        connection.lease = nil
        connection.close()
    }

    // MARK: For the pool

    enum Placement {
        case use(HTTPConnection)
        /// Until the connection has read the response of the exchange before.
        case wait
        /// Any connection.
        case pool
    }

    func place(_ exchange: Exchange) -> Placement {
        switch self.state {
        case .held(let connection): return .use(connection)
        case .busy(let connection, next: nil):
            self.state = .busy(connection, next: exchange)
            return .wait
        case .busy, .none, .released, .discarded: return .pool
        }
    }

    /// `exchange` no longer waits.
    func withdraw(_ exchange: Exchange) {
        if case .busy(let connection, let next?) = self.state, next === exchange {
            self.state = .busy(connection, next: nil)
        }
    }

    func began(_ connection: HTTPConnection) {
        switch self.state {
        case .none, .held, .busy: self.state = .busy(connection, next: nil)
        case .released, .discarded: break
        }
    }

    /// The connection carries no exchange any more.
    /// - Returns: whether the lease keeps it, or closes it.
    func freed(_ connection: HTTPConnection) -> Bool {
        switch self.state {
        case .busy(_, let next?):
            self.state = .held(connection)
            connection.pool.run(next, on: connection)
            return true
        case .busy(_, next: nil):
            self.state = .held(connection)
            return true
        case .discarded:
            connection.lease = nil
            connection.close()
            return true
        case .none, .held, .released:
            connection.lease = nil
            return false
        }
    }

    func lost(_ connection: HTTPConnection) {
        let state = self.state
        switch state {
        case .busy, .held: self.state = .none
        case .none, .released, .discarded: return
        }
        guard case .busy(_, let next?) = state else { return }
        next.phase = .created
        connection.pool.submit(next)
    }
}

/// The account that connections are authenticated for. A request is only sent on connections of its own identity, so that
/// no request uses another account.
package struct ConnectionIdentity: Sendable, Hashable {
    private static let lastNumber = Atomic<UInt64>(0)

    private let number: UInt64

    /// An identity that equals no other.
    package init() {
        self.number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }
}
