import TLSEngine

/// How a connection is secured. Connections of the same context are interchangeable.
package struct SecureOrder: Sendable {
    /// What it asks for is answered by the consumer of the exchange that opens the connection.
    package var context: TLSContext
    /// The name to ask for and to verify; `nil` takes the origin's host.
    package var serverName: String?
    /// Sessions are resumed under this key; `nil` resumes none.
    package var resumptionKey: String?
    /// For the handshake, without the time in which we are asked. Default: 30 seconds.
    package var timeout: Duration = .seconds(30)

    package init(context: TLSContext) {
        self.context = context
    }
}
