/// A connection taken off a listener.
package struct AcceptedSocket: Hashable, Sendable {
    package let descriptor: Descriptor
    package let peer: SocketAddress
    /// Where the peer reached us, if that is known without asking the system.
    package internal(set) var local: SocketAddress?

    @inlinable
    package init(descriptor: Descriptor, peer: SocketAddress) {
        self.descriptor = descriptor
        self.peer = peer
    }
}
