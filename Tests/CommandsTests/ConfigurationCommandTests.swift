import Commands
import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Commands that read a configuration")
struct ConfigurationCommandTests {
    /// Runs `body` with the path of a file that has this content.
    private static func withFile(_ content: String, _ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("sluice.yaml")
        try Data(content.utf8).write(to: file)
        try await body(file.path)
    }

    private static let valid = """
        listeners:
          - {name: web, listen: 'ws://127.0.0.1:0'}
        routes:
          - {name: echo, path: /echo, target: echo}
        """

    // MARK: check

    @Test func validFileIsSummarized() async throws {
        try await Self.withFile(Self.valid) { path in
            let run = await CommandRun.of("check", "--config", path)
            #expect(run.code == 0 && run.errors == "")
            #expect(run.output == "\(path): ok: 1 listener, 1 route, 0 upstreams\n")
        }
    }

    @Test func pathThatCannotBeUsedIsReportedWithTheSystemsReason() async throws {
        try await Self.withFile(Self.valid) { path in
            let loop = "\(path).loop"
            try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
            let check = await CommandRun.of("check", "--config", loop)
            #expect(check.code == 78 && check.errors == "\(loop): Too many levels of symbolic links\n")
            // A bridge has two routes with its directory.
            let bridge = await CommandRun.of("bridge", "ws://127.0.0.1:0", "echo", "--web", "\(path)/www")
            let line =
                "--web: expected a directory that can be read, found a path that cannot be used (Not a directory)"
            #expect(bridge.code == 78 && bridge.errors.hasPrefix("\(line) at \"/"))
            #expect(bridge.errors.split(separator: "\n").count == 1)
        }
    }

    @Test func encryptedKeyIsReportedWithAWayToDecryptIt() async throws {
        let material = try TestCertificateAuthority().issue(TestCertificateProfile("localhost"))
        try await Self.withFile(try material.keyPEM(password: "sesame")) { key in
            let certificate = "\(key).crt"
            try Data(material.certificatePEM.utf8).write(to: URL(fileURLWithPath: certificate))
            let reason = "\(key): the key is encrypted, and there is no password for it"
            let bridge = await CommandRun.of(
                "bridge", "wss://127.0.0.1:0", "echo", "--certificate", certificate, "--key", key)
            #expect(bridge.code == 78 && bridge.errors.contains("found an unusable file: \(reason); give PEM"))
            #expect(bridge.errors.contains("or decrypt it with openssl pkey or openssl pkcs12"))
            let connect = await CommandRun.of(
                "connect", "wss://127.0.0.1:1/", "--certificate", certificate, "--key", key)
            #expect(connect.code == 78)
            #expect(connect.errors == "sluice: \(reason); decrypt it with openssl pkey or openssl pkcs12\n")
        }
    }

    @Test func validFileIsSummarizedAsJSON() async throws {
        try await Self.withFile(Self.valid) { path in
            let run = await CommandRun.of("check", "--config", path, "--json")
            #expect(run.code == 0)
            let rest = #""listeners":1,"ok":true,"problems":[],"routes":1,"upstreams":0,"warnings":[]}"#
            #expect(run.output == #"{"file":"\#(path)","# + rest + "\n")
        }
    }

    @Test(arguments: [[], ["--json"]])
    func closedStandardOutputIsAnErrorOfTheCheck(_ options: [String]) async throws {
        try await Self.withFile(Self.valid) { path in
            let run = await CommandHost(acceptsOutput: false).run(["check", "--config", path] + options)
            #expect(run.code == 74)
            #expect(run.errors == "sluice: standard output was closed by its reader\n")
        }
    }

    @Test func problemsAreReportedAlthoughStandardOutputIsClosed() async throws {
        try await Self.withFile("listeners: 1\n") { path in
            let run = await CommandHost(acceptsOutput: false).run(["check", "--config", path, "--json"])
            #expect(run.code == 78 && run.errors.hasPrefix("\(path):1:"))
        }
    }

    @Test func problemsArePrintedInTheOrderOfTheFile() async throws {
        let text = """
            listeners:
              - {name: web, listen: 'ws://127.0.0.1:99999', backlogg: 1}
            routes:
              - {name: echo, path: /echo, target: nowhere}
            """
        try await Self.withFile(text) { path in
            let run = await CommandRun.of("check", "--config", path)
            #expect(run.code == 78 && run.output == "")
            let lines = run.errors.split(separator: "\n").map(String.init)
            #expect(
                lines.first
                    == #"\#(path):2:25: listeners[0].listen: expected a port from 0 to 65535, found "ws://127.0.0.1:99999""#
            )
            #expect(lines.count == 3)
            #expect(lines.allSatisfy { $0.hasPrefix(path) })
        }
    }

    @Test func problemsAsJSONNamePlaceKeyAndRemedy() async throws {
        try await Self.withFile("listeners:\n  - {name: web, listen: 'ws://127.0.0.1:0', backlogg: 1}\n") { path in
            let run = await CommandRun.of("check", "--config", path, "--json")
            #expect(run.code == 78)
            let report = try run.documents[0]
            #expect(report["ok"] == false)
            let problems = report["problems"]?.items.filter { $0["line"] != nil && $0["message"] != nil }
            #expect(problems?.contains { $0["key"] == "listeners[0].backlogg" } == true)
            // The same lines as without --json.
            #expect(run.errors == (await CommandRun.of("check", "--config", path)).errors)
        }
    }

    @Test func namedFilesAreCheckedUnlessLeftOut() async throws {
        let text = Self.valid.replacingOccurrences(
            of: "'ws://127.0.0.1:0'}", with: "'wss://127.0.0.1:0', tls: {certificate: /nowhere.pem, key: /nowhere.key}}"
        )
        try await Self.withFile(text) { path in
            let run = await CommandRun.of("check", "--config", path)
            #expect(run.code == 78)
            #expect(run.errors.contains("listeners[0].tls.certificate: expected a file that can be read"))
            let without = await CommandRun.of("check", "--config", path, "--without-files")
            #expect(without.code == 0 && without.errors == "")
        }
    }

    @Test func certificatesThatEndAreWarnings() async throws {
        let certificate = try TestCertificate(.expired("gateway.test"))
        try await Self.withFile(certificate.certificatePEM + certificate.keyPEM()) { pem in
            let text = Self.valid.replacingOccurrences(
                of: "'ws://127.0.0.1:0'}", with: "'wss://127.0.0.1:0', tls: {certificate: '\(pem)'}}")
            try await Self.withFile(text) { path in
                let run = await CommandRun.of("check", "--config", path)
                #expect(run.code == 0 && run.output == "\(path): ok: 1 listener, 1 route, 0 upstreams\n")
                #expect(run.errors.hasPrefix("warning: \(path):2:"))
                #expect(run.errors.contains("found one that has expired: \(pem); renew it"))
                #expect(run.errors.split(separator: "\n").count == 1)
                let report = try await CommandRun.of("check", "--config", path, "--json").documents[0]
                #expect(report["ok"] == true && report["problems"] == [])
                #expect(report["warnings"]?.items.map { $0["key"] } == ["listeners[0].tls.certificate"])
                let without = await CommandRun.of("check", "--config", path, "--without-files", "--json")
                #expect(try without.errors == "" && without.documents[0]["warnings"] == [])
            }
        }
    }

    @Test(arguments: ["", "listeners: 7", "[]", "a: [", "listeners: []\nlisteners: []", "\u{FF}"])
    func fileThatIsNoConfigurationIsRefused(_ text: String) async throws {
        try await Self.withFile(text) { path in
            let run = await CommandRun.of("check", "--config", path)
            #expect(run.code == 78 && run.output == "")
            #expect(run.errors.hasPrefix(path) && run.errors.hasSuffix("\n"))
        }
    }

    // MARK: serve

    @Test func serveRunsTheFileWithTheOverridesOfTheCommandLine() async throws {
        try await Self.withFile(Self.valid + "\nlog-level: error\n") { path in
            let plain = await CommandRun.of("serve", "--config", path)
            #expect(plain.code == 0 && plain.gateways.count == 1)
            #expect(plain.gateways.first?.log.level == .error && plain.gateways.first?.log.format == .text)
            let changed = await CommandRun.of(
                "serve", "--config", path, "--log-level", "debug", "--log-format", "json")
            #expect(changed.gateways.first?.log.level == .debug && changed.gateways.first?.log.format == .json)
        }
    }

    @Test func serveWithoutAFileRunsTheBuiltInConfiguration() async throws {
        let run = await CommandRun.of("serve")
        let configuration = try #require(run.gateways.first)
        #expect(configuration.listeners.map(\.name) == ["web"])
        #expect(configuration.routes.count == 7)
        #expect(configuration.control.address != nil)
    }

    @Test func serveRefusesAnInvalidFile() async throws {
        try await Self.withFile("listeners: 7") { path in
            let run = await CommandRun.of("serve", "--config", path)
            #expect(run.code == 78 && run.gateways.isEmpty && run.errors.hasPrefix(path))
        }
    }

    // MARK: bridge

    /// An option of `bridge` as typed, and as the library's request takes it.
    private static let options: [(words: [String], option: BridgeOption, text: String?)] = [
        (["--subprotocol", "mqtt"], .subprotocol, "mqtt"), (["--framing", "lines"], .framing, "lines"),
        (["--half-close", "hold"], .halfClose, "hold"), (["--header", "X: y"], .header, "X: y"),
        (["--compress"], .compress, nil), (["--ping-interval", "5s"], .pingInterval, "5s"),
        (["--pong-timeout", "7s"], .pongTimeout, "7s"), (["--max-message-size", "1MiB"], .maxMessageSize, "1MiB"),
        (["--max-connections", "9"], .maxConnections, "9"), (["--idle-timeout", "1m"], .idleTimeout, "1m"),
        (["--handshake-timeout", "3s"], .handshakeTimeout, "3s"),
        (["--connect-timeout", "4s"], .connectTimeout, "4s"), (["--drain-timeout", "6s"], .drainTimeout, "6s"),
        (["--log-format", "json"], .logFormat, "json"), (["--log-level", "debug"], .logLevel, "debug"),
        (["--quiet"], .quiet, nil), (["--proxy-protocol", "in,v1"], .proxyProtocol, "in,v1"),
    ]

    @Test(arguments: options.indices)
    func bridgeOptionReachesTheConfiguration(_ index: Int) async throws {
        let (words, option, text) = Self.options[index]
        let target = "ws://127.0.0.1:1/"
        let listen = option == .handshakeTimeout ? "ws://127.0.0.1:0" : "tcp://127.0.0.1:0"
        let run = await CommandHost().run(["bridge", listen, target] + words)
        #expect(run.code == 0 && run.errors == "")
        var expected = try BridgeRequest(listen: listen, target: target, options: [.init(option, text)]).read()
            .configuration
        expected.control.address = nil
        #expect(run.gateways == [expected])
        #expect(run.gateways != (await CommandRun.of("bridge", listen, target)).gateways)
    }

    @Test func bridgeRunsNoControlPlane() async throws {
        let run = await CommandRun.of("bridge", "ws://127.0.0.1:0/vnc", "tcp://127.0.0.1:5900", "--origin", "null")
        let configuration = try #require(run.gateways.first)
        #expect(configuration.control.address == nil)
        #expect(configuration.listeners.count == 1 && configuration.routes.count == 1)
    }

    // MARK: token

    @Test func tokensAreBase64OfTheURLKind() {
        // RFC 4648 §10, with the letters of §5.
        #expect(BearerToken.secret(Array("foobar".utf8)) == "slc_Zm9vYmFy")
        #expect(BearerToken.secret(Array("fooba".utf8)) == "slc_Zm9vYmE")
        #expect(BearerToken.secret(Array("foob".utf8)) == "slc_Zm9vYg")
        #expect(BearerToken.secret([0xFB, 0xFF, 0xBF]) == "slc_-_-_")
        #expect(BearerToken.secret([UInt8](repeating: 0, count: BearerToken.randomByteCount)).count == 47)
        #expect(BearerToken.hash(digest: [0x00, 0xAB]) == "sha256:00ab")
    }

    @Test func tokenIsPrintedWithTheLinesForTheConfiguration() async throws {
        let run = await CommandRun.of(
            "token", "--name", "ops", "--scope", "operate", "--scope", "read", "--expires", "90d")
        #expect(run.code == 0 && run.errors == "")
        #expect(run.lines[0].hasPrefix("slc_"))
        let configuration = run.lines.drop { $0 != "control:" }.joined(separator: "\n")
        let located = try ConfigurationReader.read(Array((Self.valid + "\n" + configuration).utf8), file: "c.yaml")
        let token = try #require(located.configuration.control.tokens.first)
        #expect(token.name == "ops" && token.scopes == [.read, .operate])
        let lifetime = try #require(token.expires) - Int64(Date().timeIntervalSince1970 * 1000)
        #expect(abs(lifetime - 90 * 86_400_000) < 60_000)
    }

    @Test func tokenAsJSONHasItsMembers() async throws {
        let run = await CommandRun.of("token", "--name", "scraper", "--scope", "metrics", "--json")
        let token = try run.documents[0]
        #expect(token.members.map(\.name) == ["hash", "name", "scopes", "token"])
        #expect(token["name"] == "scraper" && token["scopes"] == ["metrics"])
    }

    @Test func everyTokenIsAnother() async {
        let first = await CommandRun.of("token", "--name", "a", "--scope", "read")
        let second = await CommandRun.of("token", "--name", "a", "--scope", "read")
        #expect(first.lines[0] != second.lines[0])
    }
}
