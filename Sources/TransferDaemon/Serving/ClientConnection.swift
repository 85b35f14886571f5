import BackgroundTransfers
import ByteKernels
import StreamTransport

/// One program connected to the daemon. Confined to the daemon's loop.
final class ClientConnection {
    /// Bytes that may wait for a program to read them; one that is slower loses its connection, but no message.
    static let outputLimit = 32 << 20
    /// Above so many bytes in the queue, lists and messages wait until the program has read them.
    private static let highWatermark = 1 << 20

    /// Role of the program.
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
    /// Transfers that it has not got yet; `nil` once it has got all.
    private var listed: ArraySlice<TransferSchedule.Task>?
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

    // MARK: The list of transfers

    /// Whether lists and messages may be sent now.
    var takesMore: Bool { self.isOpen && self.connection.queuedBytes < Self.highWatermark }

    /// Whether the program has got its list.
    var hasList: Bool { self.listed == nil }

    func list(_ tasks: [TransferSchedule.Task]) { self.listed = tasks[...] }

    func nextListed() -> TransferSchedule.Task? { self.listed?.popFirst() }

    /// Sends the end of the list behind its last transfer.
    /// - Returns: whether the program has got its list.
    func finishList() -> Bool {
        guard let listed else { return true }
        guard listed.isEmpty else { return false }
        self.listed = nil
        self.send(.ready)
        return true
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

    func outputProgressed() { self.daemon?.writeMore(to: self) }

    func transportEnded(_ end: TransportEnd) {
        self.isOpen = false
        self.daemon?.ended(self)
    }
}
