import StreamTransport

/// One request to be made, and under which terms.
package struct ExchangeOrder: Sendable {
    package var origin: Origin
    /// Needed for `https`.
    package var secure: SecureOrder?
    package var proxy: ProxyHop?
    package var head: RequestHead
    package var body: RequestBody = .none

    /// Who waits for a connection is served in the order of priority, 0 to 1, then of arrival. Default: 0.5.
    package var priority: Float = 0.5
    /// Opens a connection of its own, though an idle one waits. Default: false.
    package var needsFreshConnection = false
    /// For name resolution and connecting together. Default: 60 seconds.
    package var connectTimeout: Duration = .seconds(60)
    /// Longest time on an open connection without a byte either way. It does not run while the consumer pulls nothing
    /// or the body source has nothing. Default: 60 seconds; `nil`: none.
    package var idleTimeout: Duration? = .seconds(60)
    /// Sends the head with `Expect: 100-continue` and waits so long for the server's word before the body is sent
    /// (RFC 9110 §10.1.1). Default: `nil`, the body follows at once.
    package var continueTimeout: Duration?
    /// What packets are marked with while the connection is this exchange's; what opens the connection is not marked.
    /// Default: `.standard`.
    package var trafficClass = TrafficClass.standard
    /// Whether the metrics that the end brings are to have the instants and the connection's facts: reading clocks takes
    /// its time. Default: true.
    package var isMeasured = true

    package init(_ origin: Origin, head: RequestHead = RequestHead()) {
        self.origin = origin
        self.head = head
    }
}
