import StreamTransport

/// Peers whose word about the client is believed: their PROXY headers, their forwarding fields.
package struct TrustedPeers: Hashable, Sendable {
    private let blocks: [AddressBlock]

    package init(_ blocks: [AddressBlock]) {
        self.blocks = blocks
    }

    /// Whether the peer's address lies in one of the blocks; IPv4 written as IPv6 counts as IPv4. A peer on a Unix
    /// socket counts as loopback.
    package func contains(_ peer: SocketAddress) -> Bool {
        let address = peer.ipAddress ?? .loopback
        return self.blocks.contains { $0.contains(address) }
    }
}
