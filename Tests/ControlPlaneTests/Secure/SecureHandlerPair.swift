import ControlPlane
import NIOCore
import NIOEmbedded
import TLSEngine

/// Two ends of one TLS connection in embedded channels; `pump` carries the records to and fro.
final class SecureHandlerPair {
    let client = EmbeddedChannel()
    let server = EmbeddedChannel()
    let clientLog = EventLog()
    let serverLog = EventLog()

    /// Writes down what reaches the end of a pipeline.
    final class EventLog: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        var lines: [String] = []
        var bytes: [UInt8] = []
        var metadata: TLSMetadata?

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.bytes += Array(self.unwrapInboundIn(data).readableBytesView)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let metadata = event as? TLSMetadata {
                self.metadata = metadata
                self.lines.append("secured")
            } else if event as? ChannelEvent == .inputClosed {
                self.lines.append("input closed")
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if let failure = error as? TLSFailure {
                self.lines.append("\(failure.kind)")
            } else {
                self.lines.append("\(error)")
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.lines.append("inactive")
        }
    }

    init(client: SecureHandler, server: SecureHandler) throws {
        try self.server.pipeline.syncOperations.addHandlers([server, self.serverLog])
        try self.client.pipeline.syncOperations.addHandlers([client, self.clientLog])
        try self.server.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try self.client.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 2)).wait()
    }

    /// Carries records until neither side has any.
    /// - Parameter pieces: how many bytes are carried at once.
    func pump(pieces: Int = .max) throws {
        var moved = true
        while moved {
            self.client.embeddedEventLoop.run()
            self.server.embeddedEventLoop.run()
            moved = try self.carry(self.client, self.server, pieces)
            if try self.carry(self.server, self.client, pieces) { moved = true }
        }
    }

    private func carry(_ from: EmbeddedChannel, _ to: EmbeddedChannel, _ pieces: Int) throws -> Bool {
        guard var bytes = try from.readOutbound(as: ByteBuffer.self) else { return false }
        while bytes.readableBytes > 0, let piece = bytes.readSlice(length: min(pieces, bytes.readableBytes)) {
            _ = try? to.writeInbound(piece)
        }
        return true
    }
}
