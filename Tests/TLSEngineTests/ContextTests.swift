import Foundation
import Synchronization
import TLSEngine
import TestSupport
import Testing

@Suite("TLS contexts: versions, names, protocols, reload, key log")
struct ContextTests {
    /// Other threads use TLS while the process exits: the handler runs after one that libcrypto would add.
    @Test func contextIsMadeWhileTheProcessExits() async {
        await #expect(processExitsWith: .exitCode(7)) {
            atexit {
                if (try? TLSContext(.client())) != nil { _exit(7) }
            }
            _ = try TLSContext(.client())
            exit(0)
        }
    }

    @Test func versionsThatDoNotMeetEndWithAnAlert() throws {
        var client = try Fixture.client()
        client.maximumVersion = .tls12
        let pair = try SecurePair(client, Fixture.server(.tls13))
        pair.run()
        #expect(pair.server.failure?.kind == .handshake)
        #expect(pair.server.failure?.alert == TLSAlert(code: 70, origin: .ours))
        #expect(pair.client.failure?.alert == TLSAlert(code: 70, origin: .peer))
    }

    @Test func theNewestCommonVersionIsSpoken() throws {
        let server = TLSConfiguration.server([try Fixture.identity(Fixture.all().server)])
        let pair = try SecurePair(Fixture.client(), server)
        pair.run()
        #expect(pair.client.metadata?.version == .tls13)
    }

    @Test func impossibleConfigurationsAreRefused() throws {
        let changes: [(inout TLSConfiguration) -> Void] = [
            {
                $0.minimumVersion = .tls13; $0.maximumVersion = .tls12
            },
            { $0.applicationProtocols = [""] },
            { $0.applicationProtocols = [String(repeating: "a", count: 256)] },
            { $0.cipherList = "NONSENSE" },
            { $0.cipherSuites = "NONSENSE" },
            { $0.sessionLifetime = 0 },
            { $0.securityLevel = 6 },
            { $0.keyLog = .file("/nowhere/keys") },
            // Not a regular file: a FIFO would block the writer until a reader opens it.
            { $0.keyLog = .file("/dev/null") },
            { $0.identities = [] },
        ]
        for (index, change) in changes.enumerated() {
            var configuration = try Fixture.server()
            change(&configuration)
            let error = #expect(throws: TLSFailure.self, "\(index)") { try TLSContext(configuration) }
            #expect(error?.kind == .configuration, "\(index)")
        }
    }

    @Test(arguments: TLSVersion.both)
    func theServersOrderOfProtocolsCounts(_ version: TLSVersion) throws {
        var client = try Fixture.client()
        client.applicationProtocols = ["a", "bb", "ccc"]
        var server = try Fixture.server(version)
        server.applicationProtocols = ["dd", "ccc", "a"]
        let pair = try SecurePair(client, server)
        pair.run()
        #expect(pair.client.metadata?.applicationProtocol == "ccc")
        #expect(pair.server.metadata?.applicationProtocol == "ccc")
    }

    @Test(arguments: TLSVersion.both)
    func noCommonProtocolIsAnAlert(_ version: TLSVersion) throws {
        var client = try Fixture.client()
        client.applicationProtocols = ["a"]
        var server = try Fixture.server(version)
        server.applicationProtocols = ["b"]
        let pair = try SecurePair(client, server)
        pair.run()
        #expect(pair.client.failure?.alert?.name == "no_application_protocol")
        let without = try SecurePair(Fixture.client(), server)
        without.run()
        #expect(without.client.metadata != nil)
        #expect(without.client.metadata?.applicationProtocol == nil)
    }

    @Test(arguments: TLSVersion.both)
    func aServerPicksTheCertificateByName(_ version: TLSVersion) throws {
        let authority = try Fixture.all().authority
        let first = try authority.issue("first.test")
        let exact = try authority.issue("a.many.test")
        let wild = try authority.issue("*.many.test")
        let server = try TLSContext(Fixture.server([first, wild, exact], version))
        var configuration = try Fixture.client()
        configuration.checksServerName = false
        let client = try TLSContext(configuration)
        let expected: [(String?, TestCertificate)] = [
            ("first.test", first), ("a.many.test", exact), ("A.MANY.test", exact), ("b.many.test", wild),
            ("many.test", first), ("a.b.many.test", first), ("unknown.test", first), (nil, first), ("127.0.0.1", first),
        ]
        for (name, certificate) in expected {
            let pair = try SecurePair(client: client, server: server, name: name)
            pair.run()
            #expect(pair.client.metadata?.peerChain.first == certificate.der, "\(name ?? "no name")")
            #expect(pair.server.metadata?.serverName == (name == "127.0.0.1" ? nil : name))
        }
    }

    @Test(arguments: TLSVersion.both)
    func namedCertificatePrecedesTheDefaultOfAnotherKeyType(_ version: TLSVersion) throws {
        let authority = try Fixture.all().authority
        let named = try authority.issue("rsa.test", key: .rsa)
        let pair = try SecurePair(
            Fixture.client(), Fixture.server([Fixture.all().server, named], version), name: "rsa.test")
        pair.run()
        #expect(pair.client.metadata?.peerChain.first == named.der, "\(String(describing: pair.client.failure))")
    }

    @Test(arguments: TLSVersion.both)
    func aServerMayRefuseNamesThatItHasNoCertificateFor(_ version: TLSVersion) throws {
        var server = try Fixture.server(version)
        server.refusesUnknownServerNames = true
        let refused = try SecurePair(Fixture.client(), server, name: "unknown.test")
        refused.run()
        #expect(refused.client.failure?.alert?.name == "unrecognized_name")
        let welcome = try SecurePair(Fixture.client(), server)
        welcome.run()
        #expect(welcome.client.metadata != nil)
    }

    @Test(arguments: [true, false])
    func aServerShowsTheKindOfKeyThatTheClientCanRead(_ named: Bool) throws {
        let authority = try Fixture.all().authority
        let curve = try authority.issue("both.test")
        let rsa = try authority.issue("both.test", key: .rsa)
        let first = try authority.issue("first.test")
        let server = try TLSContext(Fixture.server(named ? [first, curve, rsa] : [curve, rsa], .tls12))
        for (ciphers, certificate) in [("ECDHE-RSA-AES128-GCM-SHA256", rsa), ("ECDHE-ECDSA-AES128-GCM-SHA256", curve)] {
            var client = try Fixture.client()
            client.cipherList = ciphers
            let pair = try SecurePair(client: TLSContext(client), server: server, name: "both.test")
            pair.run()
            #expect(
                pair.client.metadata?.peerChain.first == certificate.der, "\(String(describing: pair.client.failure))")
        }
    }

    @Test(arguments: TLSVersion.both)
    func aReloadTouchesNewHandshakesOnly(_ version: TLSVersion) throws {
        let context = try TLSContext(Fixture.server(version))
        let client = try TLSContext(Fixture.client())
        let open = try SecurePair(client: client, server: context)
        open.run()
        let begun = try SecurePair(client: client, server: context)
        let renewed = try Fixture.all().authority.issue("server.test")
        try context.reload(Fixture.server([renewed], version))
        begun.run()
        #expect(begun.client.metadata?.peerChain.first == (try Fixture.all().server.der))
        let later = try SecurePair(client: client, server: context)
        later.run()
        #expect(later.client.metadata?.peerChain == [renewed.der])
        try open.client.write([1])
        open.run()
        #expect(open.server.received == [1])
    }

    @Test func handshakesContinueWhileTheContextIsReloaded() async throws {
        let context = try TLSContext(Fixture.server())
        let client = try TLSContext(Fixture.client())
        try await withThrowingTaskGroup { group in
            for task in 0..<4 {
                group.addTask {
                    for _ in 0..<20 {
                        let pair = try SecurePair(client: client, server: context, key: "\(task % 2)")
                        pair.run()
                        #expect(pair.client.metadata != nil, "\(String(describing: pair.client.failure))")
                    }
                }
            }
            group.addTask {
                for _ in 0..<20 { try context.reload(Fixture.server()) }
            }
            try await group.waitForAll()
        }
    }

    @Test func aReloadThatFailsLeavesTheOldMaterial() throws {
        let context = try TLSContext(Fixture.server())
        var broken = try Fixture.server()
        broken.trust = .only([.file("/nowhere/ca.pem")])
        broken.peerVerification = .required
        #expect(throws: TLSFailure.self) { try context.reload(broken) }
        let pair = try SecurePair(client: TLSContext(Fixture.client()), server: context)
        pair.run()
        #expect(pair.client.metadata != nil)
    }

    /// The NSS format: label, client random, secret, the latter two in hexadecimal.
    @Test(arguments: TLSVersion.both)
    func bothSidesLogTheSameKeys(_ version: TLSVersion) throws {
        let logs = [Lines(), Lines()]
        var client = try Fixture.client()
        client.keyLog = .lines { logs[0].add($0) }
        var server = try Fixture.server(version)
        server.keyLog = .lines { logs[1].add($0) }
        let pair = try SecurePair(client, server)
        pair.run()
        let labels: Set<String> =
            version == .tls12
            ? ["CLIENT_RANDOM"]
            : [
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
                "SERVER_TRAFFIC_SECRET_0", "EXPORTER_SECRET",
            ]
        let lines = logs[0].all
        #expect(Set(lines) == Set(logs[1].all))
        #expect(Set(lines.compactMap { $0.split(separator: " ").first.map(String.init) }) == labels)
        for line in lines {
            let parts = line.split(separator: " ")
            #expect(parts.count == 3)
            #expect(parts[1].count == 64)
            #expect(parts[2].count == 96 || parts[2].count == 64)
            #expect(parts.dropFirst().joined().allSatisfy { $0.isHexDigit })
        }
    }

    @Test func keysAreAppendedToAFile() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("# before\n".utf8).write(to: URL(filePath: path))
        var client = try Fixture.client()
        client.keyLog = .file(path)
        let pair = try SecurePair(client, Fixture.server(.tls12))
        pair.run()
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        #expect(text.hasPrefix("# before\nCLIENT_RANDOM "))
        #expect(text.hasSuffix("\n"))
    }

    @Test func keyLogFileIsReadableByItsOwnerOnly() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var client = try Fixture.client()
        client.keyLog = .file(path)
        _ = try TLSContext(client)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
    }

    @Test func keyLogThatCannotBeWrittenIsReportedOnceAndConnectionsGoOn() async {
        await #expect(processExitsWith: .success) {
            let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
            defer { try? FileManager.default.removeItem(atPath: path) }
            // Limits the size of files, as a full disk does.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1, rlim_max: 1)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let reports = Lines()
            var client = try Fixture.client()
            client.keyLog = .file(path) { reports.add("failed") }
            let context = try TLSContext(client)
            for _ in 0..<2 {
                let pair = try SecurePair(client: context, server: TLSContext(Fixture.server(.tls13)))
                pair.run()
                try #require(pair.client.metadata?.version == .tls13)
            }
            try #require(reports.all == ["failed"])
        }
    }

    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { self.lines.withLock { $0 } }

        func add(_ line: String) {
            self.lines.withLock { $0.append(line) }
        }
    }
}
