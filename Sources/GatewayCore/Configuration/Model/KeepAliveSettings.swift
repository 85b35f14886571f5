/// How the kernel notices that the other end of a TCP connection is gone. Without effect on Unix sockets.
package struct KeepAliveSettings: Sendable, Equatable {
    /// Silence before the first probe, 1 s to 9 h; `nil` sends none.
    package var idle: Duration? = .seconds(60)
    /// Between probes, 1 s to 9 h.
    package var interval: Duration = .seconds(15)
    /// Unanswered probes before the connection counts as dead, 1 to 127.
    package var probes = 4
    /// How long written bytes may stay unacknowledged, or a peer may keep its window shut (`TCP_USER_TIMEOUT`), 1 s to
    /// 1 day;
    /// `nil` leaves the kernel's own patience of about 15 minutes.
    package var userTimeout: Duration? = .seconds(300)

    package init() {}
}
