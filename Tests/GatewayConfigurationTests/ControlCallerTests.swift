import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Callers of the control plane in the configuration")
struct ControlCallerTests {
    private static let hash = "sha256:" + String(repeating: "0f", count: 32)
    private static let token = "{name: ops, hash: '\(hash)', scopes: [read, metrics]}"
    private static let tls = "tls: {certificate: a.pem, key: a.key, client-ca: ca.pem}"

    private func settings(_ control: String) throws -> ControlSettings {
        try ConfigurationSamples.configuration(Self.document(control)).control
    }

    private static func document(_ control: String) -> String {
        "listeners: [{name: a, listen: 'ws://127.0.0.1:0'}]\nroutes: [{name: b, path: /, target: echo}]\n"
            + "control: {\(control)}"
    }

    private func problems(_ control: String) -> [String] {
        ConfigurationSamples.problems(Self.document(control))
    }

    @Test func aTokenHasANameAHashScopesAndPerhapsAnEnd() throws {
        let settings = try self.settings(
            "tokens: [\(Self.token), {name: ci, hash: '\(Self.hash)', scopes: operate, expires: 2027-01-01T00:00:00Z}]")
        #expect(settings.tokens.map(\.name) == ["ops", "ci"])
        #expect(settings.tokens[0].scopes == [.read, .metrics])
        #expect(settings.tokens[0].expires == nil)
        #expect(settings.tokens[0].hash.digest == [UInt8](repeating: 15, count: 32))
        #expect(settings.tokens[1].expires == 1_798_761_600_000)
        #expect(settings.authenticates)
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2000-02-29T12:00:00.5Z", 951_825_600_500),
        ("2026-11-21T01:00:00+01:00", 1_795_219_200_000), ("2026-11-20T19:30:00-04:30", 1_795_219_200_000),
    ])
    func anEndIsAPointInTime(_ text: String, _ milliseconds: Int64) throws {
        let item = "{name: a, hash: '\(Self.hash)', scopes: [read], expires: '\(text)'}"
        #expect(try self.settings("tokens: [\(item)]").tokens[0].expires == milliseconds)
    }

    @Test(arguments: [
        "2027-01-01", "2027-13-01T00:00:00Z", "2027-02-29T00:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01T00:00:00",
        "2027-01-01T00:00:00+1:00", "tomorrow", "1969-01-01T00:00:00Z", "2027-01-01T00:00:00.Z",
    ])
    func invalidExpiryIsRefused(_ text: String) {
        let item = "{name: a, hash: '\(Self.hash)', scopes: [read], expires: '\(text)'}"
        #expect(!self.problems("tokens: [\(item)]").isEmpty)
    }

    @Test(arguments: [
        "tokens: []", "tokens: [{name: a, hash: 'sha256:00', scopes: [read]}]",
        "tokens: [{name: a, hash: '\(hash)', scopes: []}]", "tokens: [{name: a, hash: '\(hash)'}]",
        "tokens: [{name: a, hash: '\(hash)', scopes: [all]}]", "tokens: [{hash: '\(hash)', scopes: [read]}]",
        "tokens: [\(token), \(token)]", "tokens: [{name: a, secret: x, hash: '\(hash)', scopes: [read]}]",
        "clients: [{name: a, subject: 'CN=a', scopes: [read]}]", "peers: [{uid: 1, scopes: [read]}]",
        "address: 'unix:///c', peers: [{scopes: [read]}]", "address: 'unix:///c', peers: [{uid: -1, scopes: [read]}]",
        "address: 'https://127.0.0.1:1'", "address: 'http://127.0.0.1:1', \(tls)",
        "address: 'https://127.0.0.1:1', \(tls), clients: [{name: a, scopes: [read]}]",
        "address: 'https://127.0.0.1:1', \(tls), clients: [{name: a, subject: a, pin: b, scopes: [read]}]",
        "address: 'https://127.0.0.1:1', tls: {certificate: a}, clients: [{name: a, subject: a, scopes: [read]}]",
        "targets: [x y]", "max-requests: 0", "request-rate: 5", "hosts: ['a:1']",
    ])
    func invalidCallerIsRefused(_ control: String) {
        #expect(self.problems(control).count >= 1)
    }

    @Test func addressBeyondLoopbackNeedsACaller() throws {
        let problem = try #require(self.problems("address: 'http://0.0.0.0:8081'").first)
        #expect(problem.contains("control.address") && problem.contains("sluice token"))
        let settings = try self.settings("address: 'http://0.0.0.0:8081', tokens: [\(Self.token)]")
        #expect(!settings.isLocal)
        #expect(settings.targets == .remoteDefault)
        let client = "clients: [{name: a, subject: 'CN=a', scopes: [configure]}]"
        #expect(try self.settings("address: 'https://[::]:1', \(Self.tls), \(client)").clients.count == 1)
    }

    @Test func callersAreRead() throws {
        let socket = try self.settings(
            "address: 'unix:///c', peers: [{uid: 1, gid: 2, scopes: [read]}], max-requests: 7, request-rate: 5/s, "
                + "hosts: ['*.example.com'], targets: [loopback, '10.0.0.0/8:80']")
        #expect(socket.peers == [ControlPeer(user: 1, group: 2, scopes: [.read])])
        #expect(socket.maximumRequests == 7)
        #expect(socket.requestRate == 5)
        #expect(socket.hosts == [.wildcard(suffix: "example.com")])
        #expect(socket.targets.rules.count == 2)
        let secure = try self.settings(
            "address: 'https://127.0.0.1:1', \(Self.tls), "
                + "clients: [{name: a, alternative-name: 'spiffe://x/y', scopes: [read]}]")
        #expect(secure.tls?.clientAuthentication == .require)
        #expect(secure.clients[0].identity == .alternativeName("spiffe://x/y"))
    }

    @Test func defaultTargetsDependOnTheAddress() throws {
        #expect(try self.settings("").targets == .localDefault)
        #expect(try self.settings("targets: []").targets.rules.isEmpty)
    }
}
