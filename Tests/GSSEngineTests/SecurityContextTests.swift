import GSSEngine
import TestSupport
import Testing

/// NTLM needs no further server. The scenarios test Kerberos with a key distribution centre.
@Suite("Security contexts")
struct SecurityContextTests {
    init() throws {
        try #require(NTLMUsers.areKnown)
    }

    private func client(_ user: String, _ password: String) throws -> SecurityContext {
        try SecurityContext(.ntlm, with: .password(user: user, password: password), to: "HTTP", at: "server.example")
    }

    @Test(arguments: ["DOMAIN\\ada", "ada@DOMAIN"])
    func rightPasswordIsAccepted(_ user: String) throws {
        let client = try self.client(user, "secret")
        let server = try AcceptingContext()
        let first = try client.step([])
        #expect(first.token.starts(with: "NTLMSSP\u{0}\u{1}".utf8) && !first.isComplete)
        let challenge = try server.step(first.token)
        #expect(challenge.token.starts(with: "NTLMSSP\u{0}\u{2}".utf8) && !challenge.isComplete && server.client == nil)
        let answer = try client.step(challenge.token)
        #expect(answer.token.starts(with: "NTLMSSP\u{0}\u{3}".utf8) && answer.isComplete)
        #expect(try server.step(answer.token).isComplete)
        #expect(server.client == "DOMAIN\\ada")
    }

    /// [MS-NLMP] §2.2.2.1: MsvAvChannelBindings has the MD5 of the structure of RFC 2744 §3.11 (RFC 4121 §4.1.1.2).
    @Test func answerIsBoundToTheChannel() throws {
        let bindings = Array("tls-server-end-point:".utf8) + Array(0..<32)
        let client = try SecurityContext(
            .ntlm, with: .password(user: "DOMAIN\\ada", password: "secret"), to: "HTTP", at: "server.example",
            bindings: bindings)
        let server = try AcceptingContext()
        let answer = try client.step(try server.step(try client.step([]).token).token)
        let digest: [UInt8] = [
            0x8F, 0x12, 0x14, 0xC9, 0xC9, 0xCA, 0xB8, 0xDC, 0x3B, 0xF8, 0x66, 0xDA, 0x9A, 0xBA, 0x57, 0xA7,
        ]
        #expect(answer.token.firstRange(of: [0x0A, 0, 16, 0] + digest) != nil)
        #expect(try server.step(answer.token).isComplete)
    }

    @Test func wrongPasswordIsRefused() throws {
        let (client, server) = (try self.client("DOMAIN\\ada", "wrong"), try AcceptingContext())
        let answer = try client.step(try server.step(try client.step([]).token).token)
        #expect(throws: GSSFailure.self) { try server.step(answer.token) }
        #expect(server.client == nil)
    }

    @Test(arguments: [[], [0], Array("NTLMSSP\u{0}".utf8), [UInt8](repeating: 0xFF, count: 10_000)] as [[UInt8]])
    func invalidTokenIsAFailure(_ token: [UInt8]) throws {
        let client = try self.client("DOMAIN\\ada", "secret")
        _ = try client.step([])
        #expect(throws: GSSFailure.self) { try client.step(token) }
    }

    @Test func everyBeginningOfATokenIsAFailure() throws {
        let server = try AcceptingContext()
        let challenge = try server.step(try self.client("DOMAIN\\ada", "secret").step([]).token).token
        for count in 0..<challenge.count {
            let client = try self.client("DOMAIN\\ada", "secret")
            _ = try client.step([])
            #expect(throws: GSSFailure.self, "\(count)") { try client.step(Array(challenge.prefix(count))) }
        }
    }

    @Test func missingLibraryIsAnErrorWithItsPackage() {
        let failure = #expect(throws: GSSFailure.self) {
            try SecurityContext(
                .negotiate, with: .system, to: "HTTP", at: "server.example", library: "libgssapi-that-is-not-there.so.1"
            )
        }
        let text = failure?.description ?? ""
        #expect(text.contains("libgssapi-krb5-2") && text.contains("libgssapi-that-is-not-there.so.1"), "\(text)")
    }

    @Test func failureNamesThePackage() {
        #expect(GSSFailure.libraryMissing("no file").description.contains("libgssapi-krb5-2"))
        #expect(GSSFailure.ntlmMissing.description.contains("gss-ntlmssp"))
    }
}
