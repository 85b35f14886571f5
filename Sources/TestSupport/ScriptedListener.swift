import StreamTransport

/// A listening socket played by a test: accepts whoever comes, unless told not to.
package final class ScriptedListener {
    package let descriptor: Descriptor
    /// Whoever came, in order.
    package private(set) var accepted: [ScriptedPeer] = []
    package private(set) var peerAddresses: [SocketAddress] = []
    /// Off: newcomers wait in the kernel's queue.
    package var isAccepting = true {
        didSet { self.system.rewatch(self.descriptor, for: self.isAccepting ? .readable : [], token: self.token) }
    }
    /// Whether peers read from the moment they are accepted.
    package var acceptsReading = true

    private let system: any System
    private let token: UInt64
    private weak var host: ScriptedHost?
    private var isClosed = false

    init(_ descriptor: Descriptor, of host: ScriptedHost, token: UInt64) {
        self.descriptor = descriptor
        self.system = host.system
        self.token = token
        self.host = host
        _ = self.system.watch(descriptor, for: .readable, token: token)
    }

    /// With the port that the system picked for port 0.
    package var address: SocketAddress {
        self.system.localAddress(self.descriptor) ?? .unix(path: "")
    }

    package func close() {
        guard !self.isClosed else { return }
        self.isClosed = true
        self.system.close(self.descriptor)
    }

    func ready() {
        guard !self.isClosed, self.isAccepting, let host = self.host else { return }
        guard case .success(let socket) = self.system.accept(self.descriptor) else { return }
        let peer = host.adopt(socket.descriptor)
        peer.isReading = self.acceptsReading
        self.accepted.append(peer)
        self.peerAddresses.append(socket.peer)
    }
}
