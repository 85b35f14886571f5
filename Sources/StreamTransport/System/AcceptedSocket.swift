/// A connection taken off a listener.
package struct AcceptedSocket: Hashable, Sendable {
    package let descriptor: Descriptor
    package let peer: SocketAddress

    @inlinable
    package init(descriptor: Descriptor, peer: SocketAddress) {
        self.descriptor = descriptor
        self.peer = peer
    }
}
