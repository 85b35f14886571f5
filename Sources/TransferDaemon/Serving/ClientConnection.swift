import BackgroundTransfers
import ByteKernels
import StreamTransport

/// One program connected to the daemon. Confined to the daemon's loop.
final class ClientConnection {
    /// Bytes that may wait for a program to read them; one that is slower loses its connection, but no message.
    static let outputLimit = 32 << 20

    /// What the program is to the daemon.
    enum Role {
        /// Has sent nothing yet.
        case unknown
        case owner(session: String)
        case observer
    }

    var role = Role.unknown
    /// Last message about an ended transfer that was sent.
    var sentThrough = 0
    private let connection: SocketConnection
    private var reader = MessageReader<ClientMessage>()
    private weak var daemon: TransferDaemon?
    private var isOpen = true

    init(_ connection: SocketConnection, of daemon: TransferDaemon) {
        self.connection = connection
        self.daemon = daemon
        connection.consumer = self
    }

    func send(_ message: DaemonMessage) {
        guard self.isOpen, let frame = try? MessageFraming.encode(message) else { return }
        let queued = frame.withRawSpan { self.connection.write($0) }
        if queued > Self.outputLimit { self.connection.reset() }
    }

    /// Sends a last message and closes.
    func refuse(_ refusal: Refusal) {
        self.send(.refused(refusal))
        self.close()
    }

    func close() {
        guard self.isOpen else { return }
        self.isOpen = false
        self.connection.close(linger: .seconds(1))
    }
}

extension ClientConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.reader.bytesReceived(bytes.bytes)
        do throws(FramingFailure) {
            while self.isOpen, let message = try self.reader.nextMessage() {
                self.daemon?.received(message, from: self)
            }
        } catch {
            self.refuse(.malformed)
        }
        return bytes.byteCount
    }

    func inputClosed() { self.close() }

    func outputProgressed() {}

    func transportEnded(_ end: TransportEnd) {
        self.isOpen = false
        self.daemon?.ended(self)
    }
}
