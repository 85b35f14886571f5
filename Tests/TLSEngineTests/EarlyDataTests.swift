import TLSEngine
import TestSupport
import Testing

@Suite("Early data, RFC 8446 §2.3")
struct EarlyDataTests {
    private static let request = Array("GET / HTTP/1.1\r\n\r\n".utf8)

    private static func server(limit: Int = 1 << 14, protocols: [String] = []) throws -> TLSConfiguration {
        var configuration = try Fixture.server(.tls13)
        configuration.resumption = .serverCache(limit: 10)
        configuration.earlyDataLimit = limit
        configuration.applicationProtocols = protocols
        return configuration
    }

    private static func client(_ protocols: [String] = []) throws -> TLSConfiguration {
        var configuration = try Fixture.client()
        configuration.applicationProtocols = protocols
        return configuration
    }

    /// A pair whose client has a session for `key`, and has sent nothing yet.
    private static func pair(_ client: TLSContext, _ server: TLSContext, key: String = "a") throws -> SecurePair {
        let first = try SecurePair(client: client, server: server, key: key)
        first.run()
        try #require(first.client.metadata?.earlyData == EarlyDataOutcome.none)
        return try SecurePair(client: client, server: server, key: key, starts: false)
    }

    @Test(arguments: [Int.max, 1, 100])
    func earlyDataIsReceivedWithTheFirstMessage(_ chunk: Int) throws {
        let (client, server) = (try TLSContext(Self.client(["h2"])), try TLSContext(Self.server(protocols: ["h2"])))
        let pair = try Self.pair(client, server)
        let offer = try #require(pair.client.connection.earlyDataOffer)
        #expect(offer.limit == 1 << 14 && offer.metadata.applicationProtocol == "h2" && offer.metadata.resumed)
        #expect(offer.metadata.peerChain.first == (try Fixture.all().server.der))
        pair.client.connection.start(earlyData: Self.request.span.bytes)
        pair.run(chunk: chunk)
        #expect(pair.server.received == Self.request)
        #expect(pair.client.metadata?.earlyData == .accepted(count: Self.request.count))
        #expect(pair.server.metadata?.earlyData == .accepted(count: Self.request.count))
        #expect(pair.client.metadata?.cipherIdentifier == offer.metadata.cipherIdentifier)
        // It is delivered behind the handshake, and before what follows.
        try pair.client.write(Array("more".utf8))
        try pair.server.write(Array("answer".utf8))
        pair.run(chunk: chunk)
        #expect(
            pair.server.received == Self.request + Array("more".utf8) && pair.client.received == Array("answer".utf8))
        #expect(pair.server.failure == nil && pair.client.failure == nil && pair.keptPromise)
    }

    @Test func earlyDataOfTheWholeLimitIsReceivedInParts() throws {
        let (client, server) = (try TLSContext(Self.client()), try TLSContext(Self.server(limit: 40_000)))
        let pair = try Self.pair(client, server)
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
        pair.client.connection.start(earlyData: bytes.span.bytes)
        pair.run()
        #expect(pair.server.received == bytes && pair.client.metadata?.earlyData == .accepted(count: 40_000))
    }

    @Test func moreThanTheLimitIsNotSent() throws {
        let (client, server) = (try TLSContext(Self.client()), try TLSContext(Self.server(limit: 10)))
        let pair = try Self.pair(client, server)
        pair.client.connection.start(earlyData: Self.request.span.bytes)
        pair.run()
        #expect(pair.server.received.isEmpty && pair.client.metadata?.resumed == true)
        #expect(pair.client.metadata?.earlyData == EarlyDataOutcome.none)
    }

    /// A server without the session: it may have been started again, or take a replayed message.
    @Test func aForgottenSessionRejectsEarlyData() throws {
        let client = try TLSContext(Self.client())
        let pair = try Self.pair(client, TLSContext(Self.server()))
        let other = try SecureConnection(TLSContext(Self.server()))
        pair.client.connection.start(earlyData: Self.request.span.bytes)
        pair.replaceServer(other)
        pair.run()
        #expect(pair.client.metadata?.earlyData == .rejected && pair.client.metadata?.resumed == false)
        #expect(
            pair.server.received.isEmpty && pair.server.failure == nil
                && pair.server.metadata?.earlyData == EarlyDataOutcome.none)
        try pair.client.write(Self.request)
        pair.run()
        #expect(pair.server.received == Self.request)
    }

    @Test func aReplayedFirstMessageIsNotTakenTwice() throws {
        let (client, server) = (try TLSContext(Self.client()), try TLSContext(Self.server()))
        let pair = try Self.pair(client, server)
        pair.client.connection.start(earlyData: Self.request.span.bytes)
        let message = pair.client.takeOutput()
        pair.server.inbox = message
        pair.run()
        #expect(pair.server.received == Self.request)
        let again = SecurePair.Side(try SecureConnection(server))
        _ = again.deliver(message)
        #expect(again.received.isEmpty && again.metadata == nil)
    }

    @Test func thereIsNoOfferWithoutASessionThatPermitsIt() throws {
        let client = try TLSContext(Self.client(["h2", "http/1.1"]))
        func offer(_ server: TLSConfiguration, key: String?) throws -> EarlyDataOffer? {
            let server = try TLSContext(server)
            for _ in 0..<2 { try SecurePair(client: client, server: server, key: key).run() }
            return try SecurePair(client: client, server: server, key: key, starts: false).client.connection
                .earlyDataOffer
        }
        #expect(try offer(Self.server(), key: nil) == nil)
        #expect(try offer(Fixture.server(.tls13), key: "plain") == nil)
        #expect(try offer(Fixture.server(.tls12), key: "old") == nil)
        #expect(try offer(Self.server(protocols: ["http/1.1"]), key: "new")?.metadata.applicationProtocol == "http/1.1")
        #expect(
            try SecurePair(client: client, server: TLSContext(Self.server())).server.connection.earlyDataOffer == nil)
        // The session is of a protocol that is not offered any more.
        var other = client.configuration
        other.applicationProtocols = ["h2"]
        try client.reload(other)
        #expect(
            try SecurePair(client: client, server: TLSContext(Self.server()), key: "new", starts: false).client
                .connection
                .earlyDataOffer == nil)
    }

    @Test func earlyDataNeedsSessionsThatAreUsedOnce() throws {
        var tickets = try Self.server()
        tickets.resumption = .tickets
        #expect(throws: TLSFailure.self) { try TLSContext(tickets) }
        var compact = try Self.server()
        compact.recordLayer = .compact
        #expect(throws: TLSFailure.self) { try TLSContext(compact) }
    }
}
