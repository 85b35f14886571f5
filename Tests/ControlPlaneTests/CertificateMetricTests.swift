import Foundation
import GatewayCore
import GatewayTestSupport
import TestSupport
import Testing

@Suite("The certificates of a gateway in its metrics and in its log", .timeLimit(.minutes(5)))
struct CertificateMetricTests {
    /// A folder with certificates and their keys.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appending(path: "sluice-\(UUID().uuidString)")
        private let authority: TestCertificateAuthority

        init() throws {
            self.authority = try TestCertificateAuthority()
            try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: self.url) }

        func path(_ name: String) -> String { self.url.appending(path: name).path }

        /// - Parameter days: from the beginning of the certificate to its end.
        func write(_ name: String, from: Int = 0, days: Int) throws {
            var profile = TestCertificateProfile("gateway.test", names: ["gateway.test"])
            (profile.validFrom, profile.validUntil) = (from * 86_400, (from + days) * 86_400)
            let certificate = try self.authority.issue(profile)
            try Data(certificate.chainPEM.utf8).write(to: self.url.appending(path: "\(name).pem"))
            try Data(certificate.keyPEM().utf8).write(to: self.url.appending(path: "\(name).key"))
        }

        func files(_ name: String) -> String {
            "certificate: \(self.path("\(name).pem")), key: \(self.path("\(name).key"))"
        }

        var configuration: String {
            """
            listeners:
              - {name: web, listen: 'wss://127.0.0.1:0', tls: {\(self.files("web"))}}
              - {name: more, listen: 'tls://127.0.0.1:0', route: raw, tls: {\(self.files("web"))}}
            routes: [{name: raw, target: up}, {name: echo, path: /echo, target: echo}]
            upstreams: [{name: up, endpoints: ['tls://127.0.0.1:1'], tls: {\(self.files("up"))}}]
            control: {address: 'http://127.0.0.1:0'}

            """
        }
    }

    /// Days from now to the end of each certificate, by its file's name.
    private func days(_ gateway: LoopbackGateway) async throws -> [String: Int] {
        let now = Date().timeIntervalSince1970
        let samples = try await gateway.get("/metrics").text
            .matches(of: /sluice_certificate_not_after_seconds\{file="[^"]*\/([^"]*)"\} (\d+)/)
        return Dictionary(
            samples.map { (String($0.1), Int((((Double($0.2) ?? 0) - now) / 86_400).rounded())) },
            uniquingKeysWith: { _, _ in -1 })
    }

    @Test func metricsHaveTheEndOfEachFileAndWarningsComeAtStartReloadAndLater() async throws {
        let folder = try Folder()
        try folder.write("web", days: 365)
        try folder.write("up", from: -370, days: 365)
        try await LoopbackGateway.run(folder.configuration) { gateway in
            func warnings() -> [String] { gateway.log.filter { $0.contains("expected a certificate") } }
            #expect(try await self.days(gateway) == ["web.pem": 365, "up.pem": -5])
            #expect(warnings().count == 1)
            #expect(warnings()[0].contains("upstreams[0].tls.certificate: expected a certificate that is valid now"))
            try folder.write("web", from: -70, days: 90)
            try folder.write("up", days: 365)
            // Until a reload, the former ones are in use.
            #expect(try await self.days(gateway) == ["web.pem": 365, "up.pem": -5])
            gateway.setFile(folder.configuration)
            #expect(try await gateway.post("/v1/configuration:reload").status == 200)
            #expect(try await self.days(gateway) == ["web.pem": 20, "up.pem": 365])
            let soon = warnings().dropFirst()
            #expect(soon.count == 2 && soon.allSatisfy { $0.contains("found one that expires on 20") })
            let later = Int64(Date().timeIntervalSince1970) + 21 * 86_400
            gateway.gateway.logCertificates(now: later)
            #expect(warnings().count == 5 && warnings()[4].contains("one that has expired"))
        }
    }

    @Test func certificateTowardsRedisIsTheOneOfTheStart() async throws {
        let folder = try Folder()
        for name in ["web", "up"] { try folder.write(name, days: 365) }
        try folder.write("redis", from: -88, days: 90)
        let configuration =
            folder.configuration + "cluster: {redis: 'rediss://127.0.0.1:1', tls: {\(folder.files("redis"))}}\n"
        try await LoopbackGateway.run(configuration) { gateway in
            func warnings() -> [String] { gateway.log.filter { $0.contains("expected a certificate") } }
            #expect(warnings().count == 1 && warnings()[0].contains("cluster.tls.certificate: "))
            #expect(warnings()[0].contains("renew it and restart"))
            try folder.write("redis", days: 365)
            gateway.setFile(configuration)
            #expect(try await gateway.post("/v1/configuration:reload").status == 200)
            #expect(try await self.days(gateway) == ["web.pem": 365, "up.pem": 365, "redis.pem": 2])
        }
    }

    @Test func shortCertificatesAreReportedInTheLastThirdOfTheirTime() async throws {
        let folder = try Folder()
        try folder.write("web", days: 9)
        try folder.write("up", from: 1, days: 12)
        try await LoopbackGateway.run(folder.configuration) { gateway in
            func count() -> Int { gateway.log.count { $0.contains("expected a certificate") } }
            #expect(count() == 1 && gateway.log.contains { $0.contains("one that is not valid yet") })
            let now = Int64(Date().timeIntervalSince1970)
            gateway.gateway.logCertificates(now: now + 5 * 86_400)
            #expect(count() == 1)
            gateway.gateway.logCertificates(now: now + 7 * 86_400)
            // The file of two listeners.
            #expect(count() == 3)
        }
    }
}
