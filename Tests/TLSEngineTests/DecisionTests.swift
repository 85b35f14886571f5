import TLSEngine
import TestSupport
import Testing

@Suite("Verification decided by the caller, asynchronously")
struct DecisionTests {
    enum Decider: CaseIterable {
        case client
        case server
    }

    @Test(arguments: TLSVersion.both, Decider.allCases)
    func decisionMayAcceptAnUntrustedCertificate(_ version: TLSVersion, _ decider: Decider) throws {
        let (pair, side, other) = try self.pair(version, decider, trusted: false)
        pair.run()
        let request = try #require(side.request)
        #expect(request.result.code == 20 || request.result.code == 18 || request.result.code == 19)
        #expect(request.peerChain.first == (try self.shown(by: decider).der))
        #expect(request.serverName == "server.test")
        #expect(side.metadata == nil)
        side.connection.resolveVerification(.accept)
        pair.nudge()
        #expect(side.metadata?.peerChain == request.peerChain, "\(String(describing: side.failure))")
        #expect(other.metadata != nil)
        try other.write([1, 2, 3])
        pair.run()
        #expect(side.received == [1, 2, 3])
    }

    @Test(arguments: TLSVersion.both, Decider.allCases)
    func decisionMayRejectATrustedCertificate(_ version: TLSVersion, _ decider: Decider) throws {
        let (pair, side, other) = try self.pair(version, decider, trusted: true)
        pair.run()
        let request = try #require(side.request)
        #expect(request.result.isValid, "\(request.result)")
        side.connection.resolveVerification(.reject)
        pair.nudge()
        let failure = try #require(side.failure)
        #expect(failure.kind == .rejected)
        let expected = version == .tls13 && decider == .server ? "handshake_failure" : "bad_certificate"
        #expect(failure.alert?.name == expected)
        #expect(failure.alert?.origin == .ours)
        #expect(side.metadata == nil)
        #expect(other.failure?.kind == .peerAlert)
        #expect(other.failure?.alert?.name == expected)
    }

    @Test(arguments: TLSVersion.both, Decider.allCases)
    func bytesArrivingDuringTheDecisionAreKept(_ version: TLSVersion, _ decider: Decider) throws {
        let (pair, side, other) = try self.pair(version, decider, trusted: true)
        // Written before the handshake has ended, so that it directly follows the last flight.
        try other.write(Array("early".utf8))
        pair.run(chunk: 1)
        #expect(side.request != nil)
        #expect(side.metadata == nil)
        #expect(side.received.isEmpty)
        #expect(pair.keptPromise)
        side.connection.resolveVerification(.accept)
        pair.nudge()
        #expect(side.metadata != nil)
        #expect(side.received == Array("early".utf8))
        #expect(side.events.filter { if case .verificationRequested = $0 { true } else { false } }.count == 1)
    }

    @Test(arguments: TLSVersion.both)
    func aServerRejectsBeforeTheClientsSignatureArrived(_ version: TLSVersion) throws {
        let (pair, side, other) = try self.pair(version, .server, trusted: true)
        var flight: [UInt8] = []
        while side.request == nil {
            pair.client.inbox += side.takeOutput()
            if !pair.client.inbox.isEmpty { _ = other.deliver(pair.client.inbox) }
            pair.client.inbox = []
            flight += other.takeOutput()
            guard !flight.isEmpty else { break }
            _ = side.deliver([flight.removeFirst()])
        }
        try #require(side.request != nil)
        side.connection.resolveVerification(.reject)
        _ = side.deliver([])
        #expect(side.failure?.kind == .rejected)
        #expect(side.failure?.alert?.name == (version == .tls13 ? "unexpected_message" : "bad_certificate"))
        pair.run()
        #expect(other.failure?.kind == .peerAlert)
    }

    @Test func aServerGivesNoTicketBeforeItsCallerAccepted() throws {
        let (pair, side, _) = try self.pair(.tls13, .server, trusted: true)
        pair.run()
        #expect(self.context.value?.cachedSessionCount == 0)
        side.connection.resolveVerification(.accept)
        pair.nudge()
        #expect(self.context.value?.cachedSessionCount == 1)
    }

    @Test func excessBytesDuringADecisionAreAFailure() throws {
        let (pair, side, _) = try self.pair(.tls13, .client, trusted: true)
        pair.run()
        #expect(side.request != nil)
        _ = side.deliver([UInt8](repeating: 0, count: 600_000))
        #expect(side.failure == nil)
        _ = side.deliver([UInt8](repeating: 0, count: 600_000))
        #expect(side.failure?.kind == .excessiveInput)
    }

    @Test func unaskedDecisionIsIgnored() throws {
        let (pair, side, _) = try self.pair(.tls13, .client, trusted: true)
        side.connection.resolveVerification(.accept)
        pair.run()
        #expect(side.metadata == nil)
        #expect(side.request != nil)
    }

    /// The client's context of the last pair.
    private final class Box {
        var value: TLSContext?
    }
    private let context = Box()

    private func shown(by decider: Decider) throws -> TestCertificate {
        switch decider {
        case .client: try Fixture.all().server
        case .server: try Fixture.all().client
        }
    }

    private func pair(
        _ version: TLSVersion, _ decider: Decider, trusted: Bool
    ) throws -> (SecurePair, side: SecurePair.Side, other: SecurePair.Side) {
        let fixture = try Fixture.all()
        let trust = TrustAnchors.only([Fixture.source(trusted ? fixture.authority : fixture.otherAuthority)])
        var client = try Fixture.client()
        var server = try Fixture.server(version)
        switch decider {
        case .client:
            client.trust = trust
            client.delegatesVerification = true
        case .server:
            server.trust = trust
            server.peerVerification = .required
            server.delegatesVerification = true
            client.identities = [try Fixture.identity(fixture.client)]
        }
        let context = try TLSContext(client)
        self.context.value = context
        let pair = try SecurePair(client: context, server: TLSContext(server), key: "key")
        return decider == .client ? (pair, pair.client, pair.server) : (pair, pair.server, pair.client)
    }
}
