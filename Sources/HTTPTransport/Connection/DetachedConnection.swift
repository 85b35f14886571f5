import StreamTransport

/// A connection after a 101 response, paused until it is handed over. Its owner must hand it over or close it.
///
/// Confined to its loop unless stated otherwise.
package final class DetachedConnection: @unchecked Sendable {  // Its vars are used on the loop only.
    package let metadata: ConnectionMetadata
    package let loop: Loop
    /// `nil` once it is handed over or closed.
    private var transport: (any Transport)?
    /// How the connection ended before it was handed over.
    private var end: TransportEnd?

    init(_ transport: any Transport, _ metadata: ConnectionMetadata) {
        self.metadata = metadata
        self.loop = transport.loop
        self.transport = transport
        transport.consumer = self
    }

    /// Gives the paused connection, once; bytes that followed the 101 are its first input.
    /// - Parameter adopt: makes itself the connection's consumer, which gets the end too if that has come already.
    package func handOver(_ adopt: (any Transport) -> Void) {
        self.loop.assertOnLoop()
        guard let transport = self.transport else { return }
        self.transport = nil
        transport.consumer = nil
        adopt(transport)
        guard let end = self.end, let consumer = transport.consumer else { return }
        transport.consumer = nil
        consumer.transportEnded(end)
    }

    /// Closes the connection, from any thread. Does nothing once it is handed over.
    package func close() {
        self.loop.execute { self.handOver { $0.close(linger: .zero) } }
    }
}

extension DetachedConnection: TransportConsumer {
    /// Not called: the connection is paused.
    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int { 0 }
    package func inputClosed() {}
    package func outputProgressed() {}

    package func transportEnded(_ end: TransportEnd) {
        self.end = end
    }
}
