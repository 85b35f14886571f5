import NIOCore
import StreamTransport

/// A connection that left HTTP by a 101 response. Nothing is read from it until it becomes a transport; who has it must
/// close it.
package final class UpgradedConnection: @unchecked Sendable {
    package let facts: ConnectionFacts
    private let channel: any Channel
    private let wire: WireHandler

    /// - Returns: `nil` if the connection is gone already.
    init?(_ connection: ClientConnection) {
        guard let channel = connection.context?.channel else { return nil }
        self.facts = connection.facts
        self.channel = channel
        self.wire = connection.wire
    }

    /// Makes the connection a transport of `loop`, for whom the server's first bytes wait, paused. Once, on that loop's
    /// thread.
    package func transport(on loop: Loop) -> any Transport {
        let flow = UpgradedFlow(self.channel, wire: self.wire)
        let transport = UpgradedTransport(flow, on: loop, facts: self.facts)
        flow.begin(transport)
        return transport
    }

    /// Ends the connection. Nothing happens once it is a transport's.
    package func close() {
        self.channel.eventLoop.execute {
            if !self.wire.isTaken { self.channel.close(promise: nil) }
        }
    }
}
