import ByteKernels
import StreamTransport

/// A transport consumer that records all events in order.
package final class RecordingConsumer: TransportConsumer {
    package enum Event: Equatable {
        case inputClosed
        case outputProgressed
        case ended(TransportEnd)
    }

    package private(set) var received: [UInt8] = []
    package private(set) var events: [Event] = []
    /// Number of bytes of each `bytesReceived` call.
    package private(set) var offers: [Int] = []
    /// Decides how many of the offered bytes are accepted; all by default. May act on the transport.
    package var acceptedCount: (_ offered: Int) -> Int = { $0 }
    /// The connection that bytes are spliced to after a long read; `nil` disables splicing.
    package var spliceTarget: SocketConnection?
    /// Number of spliced bytes.
    package private(set) var splicedCount = 0
    package var keepsUnreadInput = false
    /// Number of `outputFailed` calls.
    package private(set) var outputFailures = 0
    package var onBytes: ([UInt8]) -> Void = { _ in }
    package var onInputClosed: () -> Void = {}
    package var onOutputProgressed: () -> Void = {}

    package init() {}

    package var end: TransportEnd? {
        for case .ended(let end) in self.events { return end }
        return nil
    }

    package var text: String {
        String(decoding: self.received, as: UTF8.self)
    }

    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.offers.append(bytes.byteCount)
        let taken = self.acceptedCount(bytes.byteCount)
        guard taken > 0 else { return taken }
        let start = self.received.count
        self.received.append(bytes.bytes.extracting(0..<taken))
        self.onBytes(Array(self.received[start...]))
        return taken
    }

    package func spliced(_ count: Int, queued: Int) {
        self.splicedCount += count
    }

    package func inputClosed() {
        self.events.append(.inputClosed)
        self.onInputClosed()
    }

    package func outputProgressed() {
        if self.events.last != .outputProgressed { self.events.append(.outputProgressed) }
        self.onOutputProgressed()
    }

    package func outputFailed() {
        self.outputFailures += 1
    }

    package func transportEnded(_ end: TransportEnd) {
        self.events.append(.ended(end))
    }
}

/// A listener's owner that creates a connection with a `RecordingConsumer` for each accepted socket.
package final class ConnectionCollector: SocketListenerOwner {
    package private(set) var connections: [SocketConnection] = []
    package private(set) var consumers: [RecordingConsumer] = []
    package private(set) var peers: [SocketAddress] = []
    package private(set) var pauses: [SystemError] = []
    package private(set) var resumptions = 0
    package var options = SocketOptions()
    /// Called with every new connection, after its consumer is in place.
    package var onAccepted: (SocketConnection, RecordingConsumer) -> Void = { _, _ in }

    package init() {}

    package func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        guard
            let connection = try? SocketConnection(
                adopting: socket.descriptor, peer: socket.peer, local: socket.local, on: listener.loop,
                options: self.options)
        else { return }
        let consumer = RecordingConsumer()
        connection.consumer = consumer
        self.connections.append(connection)
        self.consumers.append(consumer)
        self.peers.append(socket.peer)
        self.onAccepted(connection, consumer)
    }

    package func acceptingPaused(by listener: SocketListener, _ error: SystemError) {
        self.pauses.append(error)
    }

    package func acceptingResumed(by listener: SocketListener) {
        self.resumptions += 1
    }
}

/// A closure that a loop runs in its next turn. Unlike with `Loop.execute` it need not be `Sendable`, as test and loop
/// share a thread.
final class LoopCall: TurnEndTarget {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func turnEnded() {
        self.body()
    }
}
