import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Transfer settings in a configuration")
struct TransferSettingsTests {
    private static let rest = """

        listeners: [{name: web, listen: "ws://127.0.0.1:0"}]
        routes: [{name: echo, path: /, target: echo}]
        """

    private func settings(_ text: String) throws -> TransferSettings {
        try ConfigurationSamples.configuration("control: {transfers: \(text)}" + Self.rest).control.transfers
    }

    @Test func everyValueIsRead() throws {
        let settings = try ConfigurationSamples.configuration(ConfigurationSamples.everything).control.transfers
        #expect(settings.directories == ["/srv/files", "/var/lib/sluice"])
        #expect((settings.maximumTransfers, settings.maximumRunning) == (20, 5))
        #expect((settings.maximumBody, settings.maximumMemory) == (1 << 20, 8 << 20))
        #expect(
            settings.credentials.map(\.secret) == [
                .password(user: "ada", .file("word.txt")), .password(user: "ada", .text("secret")),
                .token(.text("abc")),
                .token(.file("token.txt")),
            ])
    }

    @Test func credentialIsUsedOnlyForItsHosts() throws {
        let settings = try ConfigurationSamples.configuration(ConfigurationSamples.everything).control.transfers
        let mirror = try #require(settings.credential(named: "mirror"))
        #expect(mirror.isAllowed(for: "mirror.example") && mirror.isAllowed(for: "EU.Mirror.Example"))
        #expect(
            !mirror.isAllowed(for: "example") && !mirror.isAllowed(for: "a.b.mirror.example")
                && !mirror.isAllowed(for: "xmirror.example"))
        #expect(settings.credential(named: "nobody") == nil)
    }

    @Test(arguments: [
        ("{directories: [srv]}", "control.transfers.directories[0]: expected an absolute path"),
        ("{max-running: 0}", "control.transfers.max-running"),
        ("{max-body: 1}", "control.transfers.max-body"),
        ("{credentials: [{name: a, hosts: [h]}]}", "expected either a user with a password, or a token"),
        ("{credentials: [{name: a, hosts: [h], user: u}]}", "expected either a user with a password, or a token"),
        ("{credentials: [{name: a, hosts: [h], token: t, user: u, password: p}]}", "expected either a user"),
        ("{credentials: [{name: a, token: t}]}", "expected the hosts that this credential may be sent to"),
        ("{credentials: [{name: a, hosts: [], token: t}]}", "expected the hosts that this credential may be sent to"),
        (
            "{credentials: [{name: a, hosts: [h], token: t, token-file: f}]}",
            "expected only one of token and token-file"
        ),
        (
            "{credentials: [{name: a, hosts: [h], token: t}, {name: a, hosts: [h], token: t}]}",
            "no other credential has"
        ),
    ])
    func invalidTransferSettingIsRefused(_ text: String, _ words: String) {
        let problems = ConfigurationSamples.problems("control: {transfers: \(text)}" + Self.rest)
        #expect(problems.count == 1 && problems[0].contains(words), "\(problems)")
    }

    @Test func filesOfCredentialsAreLookedAt() throws {
        let text =
            "control: {transfers: {credentials: [{name: a, hosts: [h], token-file: /t}, {name: b, hosts: [h], user: u, "
            + "password-file: /p}]}}" + Self.rest
        let located = try ConfigurationReader.read(Array(text.utf8), file: "c.yaml")
        #expect(FileAudit.files(of: located).map(\.path) == ["/t", "/p"])
        #expect(
            FileAudit.files(of: located).map(\.keyPath.description) == [
                "control.transfers.credentials[0].token-file", "control.transfers.credentials[1].password-file",
            ])
    }
}
