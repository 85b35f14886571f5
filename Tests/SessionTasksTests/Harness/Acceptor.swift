import StreamTransport

/// A listener's owner that keeps every newcomer, paused, for the test to make something of.
final class Acceptor: SocketListenerOwner {
    private(set) var connections: [SocketConnection] = []
    /// Called with every newcomer.
    var onAccepted: (SocketConnection) -> Void = { _ in }

    func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        guard
            let connection = try? SocketConnection(
                adopting: socket.descriptor, peer: socket.peer, on: listener.loop, paused: true)
        else { return }
        self.connections.append(connection)
        self.onAccepted(connection)
    }

    func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
    func acceptingResumed(by listener: SocketListener) {}
}
