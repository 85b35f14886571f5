import ControlPlane
import GatewayConfiguration
import struct GatewayConfiguration.PublicKeyPin
import GatewayCore
import TLSEngine
import Testing

@Suite("Authentication of callers of the control plane")
struct CallerAuthenticatorTests {
    /// SHA-256 of `abc` (FIPS 180-4, the example of its appendix).
    private static let abc: [UInt8] = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03,
        0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    ]

    private func rules(
        expires: Int64? = nil, clients: [ControlClient] = [], peers: [ControlPeer] = []
    ) throws -> CallerAuthenticator {
        var settings = ControlSettings()
        let hash = try #require(TokenHash(digest: Self.abc))
        settings.tokens = [ControlToken(name: "ops", hash: hash, scopes: [.read, .operate], expires: expires)]
        settings.clients = clients
        settings.peers = peers
        return CallerAuthenticator(settings)
    }

    @Test func requestWithoutConfiguredCallersIsLocal() throws {
        let caller = try CallerAuthenticator(ControlSettings()).authenticate(authorization: nil, peer: nil, now: 0)
        #expect(caller == .local)
    }

    @Test(arguments: ["Bearer abc", "bearer abc", "BEARER   abc "])
    func tokenIsFoundByItsHash(_ authorization: String) throws {
        let caller = try self.rules().authenticate(authorization: authorization, peer: nil, now: 0)
        #expect(caller == Caller(name: "token:ops", scopes: [.read, .operate]))
    }

    @Test(arguments: ["Bearer abd", "Bearer ", "Bearer", "Basic abc", "abc", "", "Bearer abc abc"])
    func invalidAuthorizationIsRefused(_ authorization: String) throws {
        let rules = try self.rules()
        let problem = #expect(throws: ControlProblem.self) {
            try rules.authenticate(authorization: authorization, peer: nil, now: 0)
        }
        #expect(problem?.status == 401)
        #expect(problem?.challenge?.hasPrefix("Bearer realm=") == true)
    }

    @Test func aTokenEndsAtItsTime() throws {
        let rules = try self.rules(expires: 1000)
        #expect(try rules.authenticate(authorization: "Bearer abc", peer: nil, now: 999).name == "token:ops")
        #expect(throws: ControlProblem.self) {
            try rules.authenticate(authorization: "Bearer abc", peer: nil, now: 1000)
        }
    }

    @Test func requestWithoutCredentialsIsAnonymous() throws {
        #expect(try self.rules().authenticate(authorization: nil, peer: nil, now: 0) == .anonymous)
    }

    @Test func certificateIsFoundBySubjectNameOrKey() throws {
        let made = TLSEngine.PublicKeyPin(digest: Self.abc)
        let pin = try #require(made)
        let shown = CertificateNames(subject: "CN=a,O=Example", alternativeNames: ["a.example"], pin: pin)
        let peer = ConnectionPeer(address: "192.0.2.1:1", certificate: shown)
        let ownMade = PublicKeyPin(digest: Self.abc)
        let ownPin = try #require(ownMade)
        let marks: [ControlClient.Identity] = [
            .subject("CN=a,O=Example"), .alternativeName("a.example"), .pin(ownPin),
        ]
        for mark in marks {
            let rules = try self.rules(clients: [ControlClient(name: "a", identity: mark, scopes: [.read])])
            #expect(
                try rules.authenticate(authorization: nil, peer: peer, now: 0)
                    == Caller(name: "client:a", scopes: [.read]))
            // A token that is shown is what counts, even where a certificate is.
            #expect(try rules.authenticate(authorization: "Bearer abc", peer: peer, now: 0).name == "token:ops")
        }
        for mark in [ControlClient.Identity.subject("CN=a"), .alternativeName("b.example")] {
            let rules = try self.rules(clients: [ControlClient(name: "a", identity: mark, scopes: [.read])])
            #expect(try rules.authenticate(authorization: nil, peer: peer, now: 0) == .anonymous)
        }
    }

    @Test func aProcessIsKnownByItsUserAndGroup() throws {
        let rules = try self.rules(peers: [
            ControlPeer(user: 7, scopes: [.read]), ControlPeer(group: 8, scopes: [.operate]),
            ControlPeer(user: 1, group: 8, scopes: [.configure]),
        ])
        func caller(_ user: UInt32, _ group: UInt32) throws -> Caller {
            let process = PeerProcess(identifier: 1, user: user, group: group)
            return try rules.authenticate(
                authorization: nil, peer: ConnectionPeer(address: nil, process: process), now: 0)
        }
        #expect(try caller(7, 8) == Caller(name: "uid:7", scopes: [.read, .operate]))
        #expect(try caller(7, 9).scopes == [.read])
        #expect(try caller(1, 8).scopes == [.operate, .configure])
        #expect(try caller(0, 0) == .anonymous)
    }
}
