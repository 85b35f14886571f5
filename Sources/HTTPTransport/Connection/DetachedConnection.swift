import StreamTransport

/// A connection that left HTTP, paused until it is handed over: after a 101 response, or after the head of a response whose
/// content its consumer takes as it is on the wire. Its owner must hand it over or close it.
///
/// Confined to its loop unless stated otherwise.
package final class DetachedConnection: @unchecked Sendable {  // Its vars are used on the loop only.
    package let metadata: ConnectionMetadata
    package let loop: Loop
    /// Whether other requests were pipelined on the connection. The server would read further output as a request.
    package let readsOnly: Bool
    /// Bytes after the head that were received with it; at most one read.
    private let unread: [UInt8]
    /// `nil` once it is handed over or closed.
    private var transport: (any Transport)?
    /// How the connection ended before it was handed over.
    private var end: TransportEnd?

    init(
        _ transport: any Transport, _ metadata: ConnectionMetadata, unread: [UInt8] = [], readsOnly: Bool = false
    ) {
        self.metadata = metadata
        self.unread = unread
        self.readsOnly = readsOnly
        self.loop = transport.loop
        self.transport = transport
        transport.consumer = self
    }

    /// Gives the paused connection, once.
    /// - Parameter adopt: makes itself the connection's consumer, which gets the end too if that has come already. The
    ///   bytes that it is given come before those of the transport.
    package func handOver(_ adopt: (_ transport: any Transport, _ unread: [UInt8]) -> Void) {
        self.loop.assertOnLoop()
        guard let transport = self.transport else { return }
        self.transport = nil
        transport.consumer = nil
        adopt(transport, self.unread)
        guard let end = self.end, let consumer = transport.consumer else { return }
        transport.consumer = nil
        consumer.transportEnded(end)
    }

    /// Closes the connection, from any thread. Does nothing once it is handed over.
    package func close() {
        self.loop.execute { self.handOver { transport, _ in transport.close(linger: .zero) } }
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
