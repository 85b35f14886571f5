import ControlPlane
import NIOCore
import NIOEmbedded
import TLSEngine
import Testing

@Suite("TLS in a pipeline, RFC 8446 §6.1")
struct SecureHandlerTests {
    private func pair(client: TLSContext? = nil, server: TLSContext? = nil) throws -> SecureHandlerPair {
        let clientContext = if let client { client } else { try SecureFixture.client() }
        let serverContext = if let server { server } else { try SecureFixture.server() }
        return try SecureHandlerPair(
            client: SecureHandler(clientContext, serverName: "server.test"), server: SecureHandler(serverContext))
    }

    private func write(_ bytes: [UInt8], to channel: EmbeddedChannel) {
        channel.writeAndFlush(IOData.byteBuffer(ByteBuffer(bytes: bytes)), promise: nil)
    }

    @Test(arguments: [Int.max, 1000, 1])
    func bytesGoBothWaysInAnyPieces(_ pieces: Int) throws {
        let pair = try self.pair()
        try pair.pump(pieces: pieces)
        #expect(pair.clientLog.lines == ["secured"])
        #expect(pair.serverLog.lines == ["secured"])
        let long = (0..<(pieces == 1 ? 5_000 : 300_000)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        self.write(long, to: pair.client)
        self.write([1, 2, 3], to: pair.server)
        try pair.pump(pieces: pieces)
        #expect(pair.serverLog.bytes == long)
        #expect(pair.clientLog.bytes == [1, 2, 3])
    }

    @Test func writesBeforeTheHandshakeAreKept() throws {
        let pair = try self.pair()
        self.write([1, 2], to: pair.client)
        self.write([3], to: pair.client)
        try pair.pump()
        #expect(pair.serverLog.bytes == [1, 2, 3])
    }

    @Test func promiseSucceedsWhenItsBytesAreSent() throws {
        let pair = try self.pair()
        try pair.pump()
        let promises = (0..<3).map { _ in pair.client.eventLoop.makePromise(of: Void.self) }
        for promise in promises {
            pair.client.write(IOData.byteBuffer(ByteBuffer(bytes: [9])), promise: promise)
        }
        pair.client.flush()
        for promise in promises { try promise.futureResult.wait() }
        try pair.pump()
        #expect(pair.serverLog.bytes == [9, 9, 9])
    }

    @Test func protocolIsNegotiated() throws {
        let pair = try self.pair(
            client: SecureFixture.client { $0.applicationProtocols = ["h2", "http/1.1"] },
            server: SecureFixture.server { $0.applicationProtocols = ["http/1.1"] })
        try pair.pump()
        #expect(pair.clientLog.metadata?.applicationProtocol == "http/1.1")
        #expect(pair.serverLog.metadata?.serverName == "server.test")
    }

    @Test func closeNotifyDiffersFromTruncation() throws {
        let clean = try self.pair()
        try clean.pump()
        self.write([7], to: clean.server)
        clean.server.close(promise: nil)
        try clean.pump()
        clean.client.pipeline.syncOperations.fireChannelInactive()
        #expect(clean.clientLog.bytes == [7])
        #expect(clean.clientLog.lines == ["secured", "input closed", "inactive"])

        let cut = try self.pair()
        try cut.pump()
        self.write([7], to: cut.server)
        try cut.pump()
        cut.client.pipeline.syncOperations.fireChannelInactive()
        #expect(cut.clientLog.bytes == [7])
        #expect(cut.clientLog.lines == ["secured", "the connection was cut without close_notify", "inactive"])
    }

    @Test func peerThatLeavesTheHandshakeIsAFailure() throws {
        let pair = try self.pair()
        pair.client.pipeline.syncOperations.fireChannelInactive()
        #expect(pair.clientLog.lines == ["closedDuringHandshake", "inactive"])
    }

    @Test func untrustedPeerIsRefused() throws {
        let root = try SecureFixture.otherRoot()
        let pair = try self.pair(client: SecureFixture.client { $0.trust = .only([root]) })
        try pair.pump()
        #expect(pair.clientLog.lines.first?.hasPrefix("verification") ?? false)
        #expect(!pair.client.isActive)
        // The alert left before the connection was closed.
        #expect(pair.serverLog.lines.first == "peerAlert")
    }

    @Test func missingDecisionRejectsTheCertificate() throws {
        let pair = try self.pair(client: SecureFixture.client { $0.delegatesVerification = true })
        try pair.pump()
        #expect(pair.clientLog.lines == ["rejected", "inactive"])
    }

    @Test func missingIdentityShowsNoCertificate() throws {
        let pair = try self.pair(
            client: SecureFixture.client { $0.delegatesClientCertificate = true },
            server: SecureFixture.server { $0.peerVerification = .required })
        try pair.pump()
        #expect(pair.serverLog.lines.first != "secured")
    }

    @Test func garbageEndsTheConnection() throws {
        let pair = try self.pair()
        try pair.pump()
        _ = try? pair.client.writeInbound(ByteBuffer(bytes: [23, 3, 3, 0, 20] + Array(repeating: 5, count: 20)))
        #expect(pair.clientLog.lines.contains("record"))
        #expect(!pair.client.isActive)
    }
}
