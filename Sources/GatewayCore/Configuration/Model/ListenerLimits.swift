/// What a listener admits. Each refusal is counted.
package struct ListenerLimits: Sendable, Equatable {
    /// Open connections of this listener; above it 503, or a reset for raw kinds. 1 to 10 000 000.
    package var maximumConnections = 32_768
    /// Open connections of one client address (an IPv6 client counts by its /64); above it 429, or a reset. 1 to 10
    /// 000 000.
    package var maximumConnectionsPerClient = 16_384
    package var acceptRate = AcceptRate()
    /// From accepting to the end of the PROXY header, the TLS handshake and the opening handshake together. 100 ms to
    /// 10 min.
    package var handshakeTimeout: Duration = .seconds(10)
    /// TLS handshakes under way at once, of all clients; more wait for their turn. 1 to 1 000 000.
    package var maximumHandshakes = 1024
    /// Bytes that a client may send before its TLS handshake is over; more end the connection. 4 KiB to 1 MiB.
    package var maximumHandshakeSize = 64 * 1024
    /// Bytes of an opening handshake's request up to its empty line; above it 431. 1 KiB to 1 MiB.
    package var maximumHeaderSize = 16 * 1024
    /// Header fields of an opening handshake; above it 431. 8 to 10 000.
    package var maximumHeaderCount = 100

    package init() {}
}
