import StreamTransport

/// The peer of a connection, driven by a test: sends what the test says and records what it receives.
///
/// Created by a `ScriptedHost`, which drives its IO. Works on the simulated network and on real sockets.
package final class ScriptedPeer {
    package let descriptor: Descriptor
    package private(set) var received: [UInt8] = []
    /// Number of calls of `takeReceived`.
    private(set) var takeCount = 0
    package private(set) var sawEnd = false
    /// The error that ended the connection: refused, reset, timed out.
    package private(set) var failure: SystemError?
    package private(set) var isConnected: Bool
    package private(set) var isClosed = false
    /// While false, the kernel's receive buffer fills up and exerts backpressure.
    package var isReading = true {
        didSet { self.updateInterest() }
    }
    /// Most bytes of one read.
    package var readLimit = 65_536

    private let system: any System
    private let token: UInt64
    private var outgoing: ArraySlice<UInt8> = []
    private var finishes = false
    private var finished = false

    init(_ descriptor: Descriptor, on system: any System, token: UInt64, connected: Bool) {
        self.descriptor = descriptor
        self.system = system
        self.token = token
        self.isConnected = connected
        _ = system.watch(descriptor, for: connected ? .readable : [.readable, .writable], token: token)
    }

    /// Sends `bytes`, after those still queued.
    package func send(_ bytes: [UInt8]) {
        self.outgoing += bytes
        self.flush()
    }

    package func send(_ text: String) {
        self.send(Array(text.utf8))
    }

    /// Number of bytes that the kernel has not accepted yet.
    package var unsentBytes: Int {
        self.outgoing.count
    }

    /// Sends FIN after all queued bytes.
    package func finish() {
        self.finishes = true
        self.flush()
    }

    package func reset() {
        self.end { $0.system.reset($0.descriptor) }
    }

    /// Closes as an exiting program does: with a reset if there are unread bytes, else with FIN. Queued bytes are lost.
    package func close() {
        self.end { $0.system.close($0.descriptor) }
    }

    /// Returns the received bytes and clears them.
    package func takeReceived() -> [UInt8] {
        self.takeCount += 1
        defer { self.received = [] }
        return self.received
    }

    private func end(_ call: (ScriptedPeer) -> Void) {
        guard !self.isClosed else { return }
        self.isClosed = true
        call(self)
    }

    func ready(_ events: Interest) {
        guard !self.isClosed else { return }
        if !self.isConnected, !self.decideConnecting() { return }
        if events.contains(.writable) { self.flush() }
        if self.isReading { self.readOnce() }
        if events.contains(.hangUp), self.sawEnd || self.failure != nil || !self.isReading { self.hungUp() }
    }

    private func decideConnecting() -> Bool {
        if let error = self.system.connectError(self.descriptor) {
            self.failure = error
            self.close()
            return false
        }
        self.isConnected = true
        self.updateInterest()
        return true
    }

    private func readOnce() {
        guard !self.sawEnd, self.failure == nil else { return }
        switch self.system.receive(self.descriptor, atMost: self.readLimit) {
        case .bytes(let bytes): self.received += bytes
        case .end:
            self.sawEnd = true
            self.updateInterest()
        case .failed(.wouldBlock): break
        case .failed(let error): self.fail(error)
        }
    }

    private func flush() {
        guard self.isConnected, !self.isClosed, self.failure == nil else { return }
        if !self.outgoing.isEmpty {
            switch self.system.send(self.descriptor, self.outgoing) {
            case .success(let taken): self.outgoing.removeFirst(taken)
            case .failure(.wouldBlock): break
            case .failure(let error): return self.fail(error)
            }
        }
        if self.outgoing.isEmpty, self.finishes, !self.finished {
            self.finished = true
            _ = self.system.shutdownOutput(self.descriptor)
        }
        self.updateInterest()
    }

    private func fail(_ error: SystemError) {
        self.failure = error
        self.outgoing = []
    }

    /// Both directions have ended.
    private func hungUp() {
        if self.failure == nil, let error = self.system.connectError(self.descriptor) { self.failure = error }
        self.close()
    }

    private func updateInterest() {
        guard !self.isClosed, self.isConnected else { return }
        var interest: Interest = self.isReading && !self.sawEnd ? .readable : []
        if !self.outgoing.isEmpty { interest.insert(.writable) }
        self.system.rewatch(self.descriptor, for: interest, token: self.token)
    }
}

/// An event loop of scripted peers and listeners. A `TransportTestbed` or the test calls `turn`.
package final class ScriptedHost {
    package let system: any System
    private var peers: [UInt64: ScriptedPeer] = [:]
    private var listeners: [UInt64: ScriptedListener] = [:]
    private var lastToken: UInt64 = 0
    private var events = ReadyEvents()

    package init(on system: any System) {
        self.system = system
    }

    /// Starts connecting; the result is in `ScriptedPeer.isConnected` or `failure`.
    package func connect(to address: SocketAddress) throws(SystemError) -> ScriptedPeer {
        let descriptor = try self.system.connect(address).get()
        return self.adopt(descriptor, connected: false)
    }

    /// Takes ownership of a connected descriptor.
    package func adopt(_ descriptor: Descriptor) -> ScriptedPeer {
        self.adopt(descriptor, connected: true)
    }

    private func adopt(_ descriptor: Descriptor, connected: Bool) -> ScriptedPeer {
        let token = self.nextToken()
        let peer = ScriptedPeer(descriptor, on: self.system, token: token, connected: connected)
        self.peers[token] = peer
        return peer
    }

    package func listen(
        at address: SocketAddress, options: ListenOptions = ListenOptions()
    ) throws(SystemError) -> ScriptedListener {
        let descriptor = try self.system.listen(address, options: options).get()
        let token = self.nextToken()
        let listener = ScriptedListener(descriptor, of: self, token: token)
        self.listeners[token] = listener
        return listener
    }

    private func nextToken() -> UInt64 {
        self.lastToken += 1
        return self.lastToken
    }

    package func turn() {
        self.system.wait(&self.events, until: nil)
        for event in self.events.events {
            self.peers[event.token]?.ready(event.ready)
            self.listeners[event.token]?.ready()
        }
    }

    package func close() {
        for (_, peer) in self.peers.sorted(by: { $0.key < $1.key }) { peer.close() }
        for (_, listener) in self.listeners.sorted(by: { $0.key < $1.key }) { listener.close() }
        self.peers = [:]
        self.listeners = [:]
    }
}

/// A listening socket driven by a test.
package final class ScriptedListener {
    package let descriptor: Descriptor
    package private(set) var accepted: [ScriptedPeer] = []
    package private(set) var peerAddresses: [SocketAddress] = []
    /// While false, connections wait in the kernel's accept queue.
    package var isAccepting = true {
        didSet { self.system.rewatch(self.descriptor, for: self.isAccepting ? .readable : [], token: self.token) }
    }
    /// The initial `isReading` of accepted peers.
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

    /// The bound address, with the port that the system chose for port 0.
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
