import Synchronization
import TLSEngine

/// The peer of one connection to the control plane: its address, its process or its certificate.
package final class ConnectionPeer: Sendable {
    private struct State {
        var process: PeerProcess?
        var certificate: CertificateNames?
    }

    /// The peer of the connection whose request is being handled.
    @TaskLocal package static var current: ConnectionPeer?

    /// The remote address at the time of accept, for the audit log; `nil` on a Unix socket.
    package let address: String?
    /// The slot that the connection occupies in the server.
    let slot: ConnectionSlot?
    private let state = Mutex(State())

    package convenience init(
        address: String?, process: PeerProcess? = nil, certificate: CertificateNames? = nil
    ) {
        self.init(address: address, slot: nil)
        self.state.withLock { $0 = State(process: process, certificate: certificate) }
    }

    init(address: String?, slot: ConnectionSlot?) {
        self.address = address
        self.slot = slot
    }

    package var process: PeerProcess? {
        get { self.state.withLock { $0.process } }
        set { self.state.withLock { $0.process = newValue } }
    }

    /// The client certificate verified in the TLS handshake.
    package var certificate: CertificateNames? {
        get { self.state.withLock { $0.certificate } }
        set { self.state.withLock { $0.certificate = newValue } }
    }

    /// The peer as the audit log shows it.
    package var description: String {
        self.address ?? self.process.map { "uid:\($0.user) gid:\($0.group) pid:\($0.identifier)" } ?? "unix"
    }
}
