import Foundation
import GatewayCore
import GatewayTestSupport
import SessionTasks
import TLSEngine
import TestSupport

/// The configurations of the gateway of a load, and of the gateway that is its upstream.
enum LoadConfiguration {
    /// Bytes that one connection may queue on each route, in addition to one read.
    static let watermarks = ["raw": 16_384, "to-web": 8192, "packed": 8192, "sunk": 4096, "to-sink": 4096]

    static let gateway = Result { try ConfigurationSamples.configuration(gatewayText(certificates.get())) }
    static let upstream = Result { try ConfigurationSamples.configuration(upstreamText(certificates.get())) }

    /// A client of the listener that speaks TLS. One for each run: clients resume each other's sessions.
    static func makeClientSettings() throws -> SecureSettings {
        var configuration = TLSConfiguration.client()
        configuration.trust = .only([.file(try self.certificates.get().authority)])
        return SecureSettings(context: try TLSContext(configuration), serverName: "upstream.test")
    }

    /// Certificate and key of a listener that these clients trust, as the value of its key `tls`.
    static func listenerIdentity() throws -> String { try self.certificates.get().identity }

    /// Written once for all seeds. RSA, whose signatures are all of one length: the bytes under way stay the same from
    /// run to run.
    private static let certificates = Result { try LoadCertificates() }

    private static func gatewayText(_ certificates: LoadCertificates) -> String {
        """
        close-spread: 1s
        drain-timeout: 20s
        listeners:
          - {name: raw, listen: "tcp://10.1.0.1:1001", route: raw}
          - {name: bridged, listen: "tcp://10.1.0.1:1002", route: bridged, max-connections: 8}
          - {name: fed, listen: "tcp://10.1.0.1:1003", route: fed}
          - {name: echoed, listen: "tcp://10.1.0.1:1004", route: echo}
          - {name: web, listen: "ws://10.1.0.1:1005", handshake-timeout: 5s}
          - {name: signalled, listen: "tcp://10.1.0.1:1006", route: signalled}
          - {name: armoured, listen: "tcp://10.1.0.1:1007", route: armoured}
          - {name: sunk, listen: "tcp://10.1.0.1:1008", route: sunk}
          - {name: secured, listen: "tcp://10.1.0.1:1009", route: secured}
          - {name: web-secured, listen: "tcp://10.1.0.1:1010", route: web-secured}
          - {name: held, listen: "tcp://10.1.0.1:1011", route: held}
          - {name: aged, listen: "tcp://10.1.0.1:1012", route: aged}
          - name: secure
            listen: "wss://10.1.0.1:1013"
            handshake-timeout: 5s
            tls: \(certificates.identity)
        routes:
          - {name: raw, target: stream, buffer: {high: 16KiB, low: 2KiB}, idle-timeout: 10m}
          - {name: bridged, target: web, idle-timeout: 10m, ping-interval: 1s, pong-timeout: 10s}
          - {name: fed, target: source, idle-timeout: 10m}
          - {name: signalled, target: web, half-close: signal, idle-timeout: 10m}
          - {name: armoured, target: web, framing: base64, idle-timeout: 10m}
          - {name: sunk, target: sink, buffer: {high: 4KiB, low: 1KiB}, idle-timeout: 10m}
          - {name: secured, target: secured, idle-timeout: 10m}
          - {name: web-secured, target: web-secured, idle-timeout: 10m}
          - {name: held, target: web, half-close: hold, idle-timeout: 8s}
          - {name: aged, target: web, max-age: 2s}
          - {name: web-aged, path: /aged, target: web, max-age: 2s}
          - {name: small, path: /small, target: web, max-message-size: 3000, idle-timeout: 10m}
          - {name: to-stream, path: /stream, target: stream, idle-timeout: 10m}
          - {name: to-web, path: /web, target: web, buffer: {high: 8KiB, low: 1KiB}, idle-timeout: 10m, ping-interval: 1s}
          - {name: packed, path: /packed, target: web, buffer: {high: 8KiB, low: 1KiB}, idle-timeout: 10m, compress: true}
          - {name: lengths, path: /lengths, target: stream, framing: length-prefixed, idle-timeout: 10m}
          - {name: to-source, path: /source, target: source, idle-timeout: 10m}
          - {name: to-sink, path: /sink, target: sink, buffer: {high: 4KiB, low: 1KiB}, idle-timeout: 10m}
          - {name: to-nowhere, path: /nowhere, target: nowhere, idle-timeout: 10m}
          - {name: echo, path: /echo, target: echo, idle-timeout: 10m}
        upstreams:
          - {name: stream, endpoints: ["tcp://10.2.0.1:2001"], connect-timeout: 2s}
          - name: web
            endpoints: ["ws://10.2.0.1:2002/echo", "ws://10.2.0.1:2002/echo?2"]
            connect-timeout: 2s
            policy: least-connections
          - {name: secured, endpoints: ["tls://10.2.0.1:2003"], connect-timeout: 2s, tls: \(certificates.trust)}
          - {name: web-secured, endpoints: ["wss://10.2.0.1:2004/echo"], connect-timeout: 2s, tls: \(certificates.trust)}
          - {name: source, endpoints: ["tcp://10.3.0.1:3001"], connect-timeout: 2s}
          - {name: sink, endpoints: ["tcp://10.3.0.1:3002"], connect-timeout: 2s}
          - {name: nowhere, endpoints: ["tcp://10.3.0.1:3999"], connect-timeout: 2s, retries: 1}
        """
    }

    private static func upstreamText(_ certificates: LoadCertificates) -> String {
        """
        listeners:
          - {name: raw, listen: "tcp://10.2.0.1:2001", route: echo}
          - {name: web, listen: "ws://10.2.0.1:2002"}
          - {name: secured, listen: "tls://10.2.0.1:2003", route: echo, tls: \(certificates.identity)}
          - {name: web-secured, listen: "wss://10.2.0.1:2004", tls: \(certificates.identity)}
        routes:
          - {name: echo, path: /echo, target: echo, idle-timeout: 10m, compress: true}
        """
    }
}

/// Files of an authority and of one certificate under it, for as long as the process lives.
private struct LoadCertificates {
    private static let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    init() throws {
        let authority = try TestCertificateAuthority("Load", key: .rsa)
        let certificate = try authority.issue("upstream.test", key: .rsa)
        try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(at: LoadCertificates.folder) }
        try self.write(authority.pem, "ca.pem")
        try self.write(certificate.chainPEM, "c.pem")
        try self.write(certificate.keyPEM(), "k.pem")
    }

    private func write(_ text: String, _ name: String) throws {
        try text.write(to: Self.folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
    }

    var identity: String {
        "{certificate: \(Self.folder.path)/c.pem, key: \(Self.folder.path)/k.pem}"
    }

    var authority: String {
        "\(Self.folder.path)/ca.pem"
    }

    var trust: String {
        "{ca: \(self.authority), server-name: upstream.test}"
    }
}
