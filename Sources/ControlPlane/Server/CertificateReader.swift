import NIOCore
import TLSEngine

/// Notes whose certificate the client showed in its TLS handshake.
final class CertificateReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let peer: ConnectionPeer

    init(_ peer: ConnectionPeer) {
        self.peer = peer
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let facts = event as? TLSFacts, let own = facts.peerChain.first {
            self.peer.certificate = CertificateNames(der: own)
        }
        context.fireUserInboundEventTriggered(event)
    }
}
