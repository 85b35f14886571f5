import StreamTransport

/// A program made of scripted peers: one loop's worth of raw sockets that do nothing but what a test tells them.
///
/// Takes its turns from a `TransportGround`, or from whoever calls `turn`.
package final class ScriptedHost {
    package let system: any System
    private var peers: [UInt64: ScriptedPeer] = [:]
    private var listeners: [UInt64: ScriptedListener] = [:]
    private var lastToken: UInt64 = 0
    private var events = ReadyEvents()

    package init(on system: any System) {
        self.system = system
    }

    /// Begins to connect; `ScriptedPeer.isConnected` or `failure` says how it went.
    package func connect(to address: SocketAddress) throws(SystemError) -> ScriptedPeer {
        let descriptor = try self.system.connect(address).get()
        return self.adopt(descriptor, connected: false)
    }

    /// Takes over a descriptor that is connected.
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

    /// One turn: waits for something to be ready, and acts on it.
    package func turn() {
        self.system.wait(&self.events, until: nil)
        for event in self.events.events {
            self.peers[event.token]?.ready(event.ready)
            self.listeners[event.token]?.ready()
        }
    }

    /// Closes every socket.
    package func close() {
        for (_, peer) in self.peers.sorted(by: { $0.key < $1.key }) { peer.close() }
        for (_, listener) in self.listeners.sorted(by: { $0.key < $1.key }) { listener.close() }
        self.peers = [:]
        self.listeners = [:]
    }
}
