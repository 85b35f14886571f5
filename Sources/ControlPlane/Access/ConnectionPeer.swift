import Synchronization
import TLSEngine

/// Who is at the other end of one connection to the control plane, as far as the connection itself tells.
package final class ConnectionPeer: Sendable {
    private struct State {
        var process: PeerProcess?
        var certificate: CertificateNames?
    }

    /// Of the connection whose request is being carried out.
    @TaskLocal package static var current: ConnectionPeer?

    /// The address as it was when the connection was accepted, for the audit log; `nil` on a Unix socket.
    package let address: String?
    /// Among the connections of the server.
    let place: ConnectionSlot?
    private let state = Mutex(State())

    package convenience init(
        address: String?, process: PeerProcess? = nil, certificate: CertificateNames? = nil
    ) {
        self.init(address: address, place: nil)
        self.state.withLock { $0 = State(process: process, certificate: certificate) }
    }

    init(address: String?, place: ConnectionSlot?) {
        self.address = address
        self.place = place
    }

    package var process: PeerProcess? {
        get { self.state.withLock { $0.process } }
        set { self.state.withLock { $0.process = newValue } }
    }

    /// Verified in the handshake.
    package var certificate: CertificateNames? {
        get { self.state.withLock { $0.certificate } }
        set { self.state.withLock { $0.certificate = newValue } }
    }

    /// As it stands in the audit log.
    package var description: String {
        self.address ?? self.process.map { "uid:\($0.user) gid:\($0.group) pid:\($0.identifier)" } ?? "unix"
    }
}
