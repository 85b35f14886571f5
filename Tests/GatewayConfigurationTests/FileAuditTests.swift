import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Files that a configuration names")
struct FileAuditTests {
    private func located() throws -> LocatedConfiguration {
        try ConfigurationReader.read([UInt8](ConfigurationSamples.everything.utf8), file: "c.yaml")
    }

    @Test func everyFileIsAudited() throws {
        let files = try FileAudit.files(of: self.located())
        #expect(
            files.map { "\($0.keyPath) \($0.path)" } == [
                "control.transfers.credentials[0].password-file word.txt",
                "control.transfers.credentials[3].token-file token.txt",
                "tokens[1].secret-file secret.txt", "tokens[2].key-file issuer.pem",
                "listeners[1].tls.certificate a.pem", "listeners[1].tls.key a.key",
                "listeners[1].tls.certificates[0].certificate b.pem", "listeners[1].tls.certificates[0].key b.key",
                "listeners[1].tls.certificates[0].password-file b.txt", "listeners[1].tls.client-ca ca.pem",
                "listeners[1].tls.client-crl[0] ca.crl", "listeners[1].tls.client-crl[1] more.crl",
                "listeners[1].tls.key-log keys.log", "routes[2].files.directory /srv/www",
                "routes[3].targets.file desks.txt",
                "upstreams[0].tls.certificate me.pem",
                "upstreams[0].tls.key me.key",
                "upstreams[0].tls.password-file me.txt", "upstreams[0].tls.ca up.pem",
                "upstreams[0].tls.crl[0] up.crl", "upstreams[0].tls.key-log up.log",
                "upstreams[0].proxy.password-file proxy.txt",
                "cluster.tls.ca redis-ca.pem", "cluster.password-file redis.txt",
            ])
        #expect(files.filter { $0.use == .list }.map(\.path) == ["/srv/www"])
        #expect(files.filter { $0.use == .append }.map(\.path) == ["keys.log", "up.log"])
    }

    @Test func everyUnusableFileIsReportedAtItsKey() throws {
        let audit = FileAudit { path, use in
            switch path {
            case "b.key": .notPermitted
            case "more.crl", "up.pem": .missing
            case "keys.log": use == .append ? .notAFile : nil
            default: nil
            }
        }
        let problems = try audit.problems(in: self.located()).map(\.description)
        let remedy = "check the path and its permissions for the user that sluice runs as"
        #expect(
            problems == [
                "c.yaml:47:37: listeners[1].tls.certificates[0].key: expected a file that can be read, "
                    + "found a file without the required permissions at \"b.key\"; \(remedy)",
                "c.yaml:50:28: listeners[1].tls.client-crl[1]: expected a file that can be read, "
                    + "found no such file at \"more.crl\"; \(remedy)",
                "c.yaml:54:16: listeners[1].tls.key-log: expected a file that can be written, "
                    + "found something other than a regular file at \"keys.log\"; \(remedy)",
                "c.yaml:131:11: upstreams[0].tls.ca: expected a file that can be read, found no such file at \"up.pem\"; \(remedy)",
            ])
    }

    @Test func missingCertificateOfAListIsFound() throws {
        let text = """
            listeners:
              - {name: a, listen: "wss://127.0.0.1:1", tls: {certificates: [{certificate: c.pem}, {certificate: d.pem}]}}
            routes: [{name: echo, path: /echo, target: echo}]
            """
        let located = try ConfigurationReader.read([UInt8](text.utf8), file: "c.yaml")
        #expect(
            FileAudit.files(of: located).map(\.keyPath.description) == [
                "listeners[0].tls.certificates[0].certificate", "listeners[0].tls.certificates[1].certificate",
            ])
    }

    @Test func fileProblemNamesTheBridgesOption() throws {
        let request = BridgeRequest(
            listen: "wss://127.0.0.1:0", target: "echo", options: [.init(.certificate, "c.pem"), .init(.key, "k.pem")])
        let problems = try FileAudit { path, _ in path == "k.pem" ? .missing : nil }.problems(in: request.read())
        #expect(problems.map { "\($0.origin)" } == ["--key"])
    }
}
