/// How the gateway ends its connections when it is told to stop.
package struct DrainSettings: Sendable, Equatable {
    /// From the signal to the end of whatever is still open. 0 to 1 day.
    package var timeout: Duration = .seconds(30)
    /// Closing handshakes (1001) begin evenly spread over this time, so that clients do not all come back at once. 0
    /// up to
    /// `timeout`.
    package var closeSpread: Duration = .seconds(5)

    package init() {}
}
