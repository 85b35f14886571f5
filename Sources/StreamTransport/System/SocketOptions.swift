/// Options of one connection, or of all that a listener takes. `nil` is off.
package struct SocketOptions: Hashable, Sendable {
    /// Small writes leave at once (`TCP_NODELAY`).
    package var noDelay = true
    /// Idle time before the first TCP keep-alive probe; `nil` sends none.
    package var keepAliveIdle: Duration? = .seconds(60)
    /// Between probes, in whole seconds of at least 1.
    package var keepAliveInterval: Duration = .seconds(15)
    /// Unanswered probes before the connection is given up.
    package var keepAliveProbes: Int32 = 4
    /// How long written bytes may stay unacknowledged before the connection is given up (`TCP_USER_TIMEOUT`). In force only
    /// while there may be such bytes: see `RestingOutputs`.
    package var userTimeout: Duration?
    /// What packets are marked with (`IP_TOS`, `IPV6_TCLASS`); `nil` leaves it as it is.
    package var trafficClass: TrafficClass?

    package init() {}
}

/// What holds up the output of a TCP connection.
package struct OutputHold: Equatable, Sendable {
    /// Bytes that the kernel took and has not sent yet.
    package var unsent: Int
    /// Bytes that the peer has room for, as it said last.
    package var window: Int

    package init(unsent: Int, window: Int) {
        self.unsent = unsent
        self.window = window
    }
}
