import ByteKernels
import Foundation
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TLSEngine
import TestSupport
import Testing

@Suite("A listener that speaks TLS, and plain on the same port")
struct SecureListenerTests {
    /// The certificate's files for as long as the test takes.
    private final class Files {
        let authority: TestCertificateAuthority
        let folder: URL

        init() throws {
            self.authority = try TestCertificateAuthority()
            self.folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
            let certificate = try self.authority.issue("gateway.test")
            try certificate.chainPEM.write(
                to: self.folder.appendingPathComponent("c.pem"), atomically: true, encoding: .utf8)
            try certificate.keyPEM().write(
                to: self.folder.appendingPathComponent("k.pem"), atomically: true, encoding: .utf8)
        }

        deinit {
            try? FileManager.default.removeItem(at: self.folder)
        }

        func configuration(records: String = "openssl") -> String {
            """
            listeners:
              - name: web
                listen: "wss://10.1.0.1:1001"
                plain-and-tls: true
                tls: {certificate: \(self.folder.path)/c.pem, key: \(self.folder.path)/k.pem, records: \(records)}
              - name: raw-echo
                listen: "tls://10.1.0.1:1002"
                route: raw-echo
                tls: {certificate: \(self.folder.path)/c.pem, key: \(self.folder.path)/k.pem, records: \(records)}
              - name: raw-stream
                listen: "tls://10.1.0.1:1003"
                route: raw-stream
                tls: {certificate: \(self.folder.path)/c.pem, key: \(self.folder.path)/k.pem, records: \(records)}
            routes:
              - {name: raw-echo, target: echo}
              - {name: raw-stream, target: "tcp://10.2.0.1:2001"}
              - {name: echo, path: /echo, target: echo}
              - {name: stream, path: /stream, target: "tcp://10.2.0.1:2001"}
            """
        }

        var client: SecureSettings {
            get throws {
                var configuration = TLSConfiguration.client()
                configuration.trust = .only([.pem(Array(self.authority.pem.utf8))])
                return SecureSettings(context: try TLSContext(configuration), serverName: "gateway.test")
            }
        }
    }

    /// Request and frames in one TLS record: the frames wait as plaintext until the WebSocket is open.
    @Test(arguments: ["/echo", "/stream"], ["openssl", "compact"])
    func frameInTheRecordOfTheRequestIsRelayed(_ target: String, _ records: String) throws {
        let files = try Files()
        let scene = try GatewayScene(files.configuration(records: records))
        let upstream = try scene.upstream(2001)
        let loop = Loop(system: scene.network.makeSystem())
        (loop.system as? SimulatedSystem)?.drive { loop.turn() }
        let consumer = RecordingConsumer()
        let encoder = RawWebSocketPeer(try scene.client(1001), isClient: true)
        let words = Array(RawWebSocketPeer.request(to: target).utf8) + encoder.encoded(2, Array("early".utf8))
        let settings = try files.client
        var secure: SecureTransport?
        loop.inNextTurn(
            GatewayCall {
                _ = ConnectAttempt(.address(GatewayScene.gatewayAddress(1001)), on: loop, timeout: .seconds(5)) {
                    result in
                    guard case .success(let connection) = result else { return }
                    SecureTransport.upgrade(connection, settings: settings, received: []) { result in
                        secure = try? result.get()
                        secure?.consumer = consumer
                        secure?.resumeReading()
                        words.withRawSpan { secure?.write($0) }
                    }
                }
            })
        if target == "/echo" {
            #expect(scene.run { Array(consumer.received.suffix(7)) == [0x82, 5] + Array("early".utf8) })
        } else {
            #expect(scene.run { upstream.accepted.first?.received == Array("early".utf8) })
        }
        #expect(consumer.text.hasPrefix("HTTP/1.1 101 "))
        loop.inNextTurn(GatewayCall { secure?.reset() })
        scene.settle()
        scene.finish()
    }

    /// A broken record has the same effect for every protocol inside TLS.
    @Test(arguments: [(1001, "/echo"), (1001, "/stream"), (1002, nil), (1003, nil)] as [(UInt16, String?)])
    func aBrokenRecordHasOneReasonOnStreamsAndWebSockets(_ port: UInt16, _ target: String?) throws {
        let files = try Files()
        let scene = try GatewayScene(files.configuration())
        let upstream = try scene.upstream(2001)
        let loop = Loop(system: scene.network.makeSystem())
        (loop.system as? SimulatedSystem)?.drive { loop.turn() }
        let consumer = RecordingConsumer()
        let settings = try files.client
        let request = target.map { Array(RawWebSocketPeer.request(to: $0).utf8) } ?? Array("hello".utf8)
        var secure: SecureTransport?
        loop.inNextTurn(
            GatewayCall {
                _ = ConnectAttempt(.address(GatewayScene.gatewayAddress(port)), on: loop, timeout: .seconds(5)) {
                    result in
                    guard case .success(let connection) = result else { return }
                    SecureTransport.upgrade(connection, settings: settings, received: []) { result in
                        secure = try? result.get()
                        secure?.consumer = consumer
                        secure?.resumeReading()
                        request.withRawSpan { secure?.write($0) }
                    }
                }
            })
        #expect(scene.run { !consumer.received.isEmpty || upstream.accepted.first?.received.isEmpty == false })
        let record: [UInt8] = [0x17, 3, 3, 0, 32] + [UInt8](repeating: 7, count: 32)
        loop.inNextTurn(GatewayCall { record.withRawSpan { _ = secure?.lower.write($0) } })
        #expect(scene.run { !scene.gateway.endings.isEmpty })
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/tls"])
        loop.inNextTurn(GatewayCall { secure?.reset() })
        scene.settle()
        scene.finish()
    }

    /// Opens a TLS connection to the gateway and calls back when the handshake is complete.
    private func secureClient(
        _ scene: GatewayScene, _ files: Files, _ done: @escaping (Result<SecureTransport, TransportFailure>) -> Void
    ) throws {
        let loop = Loop(system: scene.network.makeSystem())
        (loop.system as? SimulatedSystem)?.drive { loop.turn() }
        let settings = try files.client
        loop.inNextTurn(
            GatewayCall {
                _ = ConnectAttempt(.address(GatewayScene.gatewayAddress(1001)), on: loop, timeout: .seconds(5)) {
                    result in
                    guard case .success(let connection) = result else { return }
                    SecureTransport.upgrade(connection, settings: settings, received: [], completion: done)
                }
            })
    }

    /// As many handshakes as may be under way are held by clients that send one byte and no more.
    @Test func silentClientsDoNotDelayOtherHandshakes() throws {
        let files = try Files()
        let scene = try GatewayScene(
            files.configuration().replacingOccurrences(
                of: "plain-and-tls: true", with: "plain-and-tls: true\n    max-tls-handshakes: 2"))
        let silent = try (0..<8).map { _ in try scene.client(1001) }
        for client in silent { client.send([22]) }
        #expect(scene.run { silent.allSatisfy(\.isConnected) })
        var good: [SecureTransport] = []
        var failures: [TransportFailure] = []
        for _ in 0..<3 {
            try self.secureClient(scene, files) { result in
                switch result {
                case .success(let secure): good.append(secure)
                case .failure(let failure): failures.append(failure)
                }
            }
        }
        // All would be over by the end of `handshake-timeout` only.
        #expect(scene.run(atMost: .seconds(9)) { good.count == 3 }, "\(failures)")
        #expect(silent.filter { $0.failure == .reset }.count >= 4)
        for secure in good { secure.loop.inNextTurn(GatewayCall { secure.reset() }) }
        scene.settle()
        scene.finish()
    }

    @Test func aHandshakeLongerThanItMayBeEndsTheConnection() throws {
        let files = try Files()
        let scene = try GatewayScene(
            files.configuration().replacingOccurrences(
                of: "plain-and-tls: true", with: "plain-and-tls: true\n    max-tls-handshake-size: 4KiB"))
        let client = try scene.client(1001)
        // A ClientHello of 60 KiB, of which the greater part is still to come.
        var record: [UInt8] = [22, 3, 1, 0x40, 0, 1, 0, 0xEA, 0x60]
        record += [UInt8](repeating: 0, count: 5 + 0x4000 - record.count)
        client.send(record)
        #expect(scene.run(atMost: .seconds(5)) { client.failure != nil || client.sawEnd })
        #expect(scene.gateway.liveCount == 0)
        scene.finish()
    }

    @Test func firstByteDistinguishesPlainFromTLS() throws {
        let files = try Files()
        let scene = try GatewayScene(files.configuration())
        let client = try scene.webSocketClient(1001, "/echo")
        client.send(1, "plain")
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101 ") == true)
        #expect(scene.run { client.frames.map(\.payload) == [Array("plain".utf8)] })
        scene.finish()
    }

    /// As much as one read can hold comes before the first byte was looked at.
    @Test func aFloodBeforeTheFirstByteIsJudgedIsNoHarm() throws {
        let files = try Files()
        let scene = try GatewayScene(files.configuration())
        let client = try scene.webSocketClient(1001, "/echo")
        let payload = [UInt8](repeating: 1, count: 100_000)
        for _ in 0..<6 { client.send(2, payload) }
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101 ") == true)
        #expect(scene.run { client.frames.count == 6 })
        #expect(client.frames.allSatisfy { $0.payload == payload })
        scene.finish()
    }
}
