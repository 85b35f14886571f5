import StreamTransport

/// A listener's owner that makes a connection of every newcomer and records what happens on it.
package final class ConnectionCollector: SocketListenerOwner {
    package private(set) var connections: [SocketConnection] = []
    package private(set) var consumers: [RecordingConsumer] = []
    package private(set) var peers: [SocketAddress] = []
    /// Why accepting was paused, each time.
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
