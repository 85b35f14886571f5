import Foundation
import StreamTransport
import Synchronization
import TestSupport
import Testing
import URLLoading

@Suite("Permitted addresses and trusted authorities of a session", .loading, .timeLimit(.minutes(20)))
struct ServerAccessTests {
    @Test(.onlyDirect("a session asks about the proxy's address"))
    func anAddressThatIsNotPermittedIsNotConnectedTo() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let asked = Mutex<[String]>([])
        let session = URLSession.test {
            $0.permitsAddress = { address, host in
                asked.withLock { $0.append("\(address) \(address.isLoopback) \(host)") }
                return false
            }
        }
        #expect(try await session.load(server.url()).code == .cannotConnectToHost)
        #expect(asked.withLock { $0 } == ["127.0.0.1:\(server.port) true 127.0.0.1"])
        #expect(server.connections == 0)
        session.invalidateAndCancel()
    }

    @Test(.onlyDirect("a session asks about the proxy's address"))
    func streamAndWebSocketTasksAreAskedToo() async throws {
        let server = try await WebServer()
        let session = URLSession.test { $0.permitsAddress = { address, _ in !address.isLoopback } }
        let stream = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        stream.resume()
        let streamError = await #expect(throws: URLError.self) {
            _ = try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 60)
        }
        #expect(streamError?.code == .cannotConnectToHost)
        let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)/"))
        let socket = session.webSocketTask(with: url)
        socket.resume()
        let socketError = await #expect(throws: URLError.self) { _ = try await socket.receive() }
        #expect(socketError?.code == .cannotConnectToHost)
        #expect(server.connections == 0)
        session.invalidateAndCancel()
    }

    @Test(.onlyDirect("a session asks about the proxy's address"))
    func aRedirectIsAskedAboutToo() async throws {
        let inner = try await WebServer(["/": .text("secret")])
        let outer = try await WebServer()
        outer.on("/", .redirect(to: inner.url().absoluteString))
        let session = URLSession.test { [port = inner.port] configuration in
            configuration.permitsAddress = { address, _ in address.port != port }
        }
        #expect(try await session.load(outer.url()).code == .cannotConnectToHost)
        #expect(inner.connections == 0)
        session.invalidateAndCancel()
    }

    @Test func configuredAuthoritiesReplaceTheSystems() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let authority = Data(try Certificates.authority().pem.utf8)
        let session = URLSession.test { $0.certificateAuthorities = authority }
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
        let other = URLSession.test()
        #expect(try await other.load(server.url()).code == .serverCertificateHasUnknownRoot)
        other.invalidateAndCancel()
    }

    @Test(.onlyDirect("a proxy is reached at the socket"))
    func unixSocketServesEveryHost() async throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("web.sock").path
        let server = try await WebServer(at: path, ["/a": .text("hello")])
        // The program itself names the socket, so that the filter is not called.
        let session = URLSession.test {
            $0.unixSocketPath = path
            $0.permitsAddress = { _, _ in false }
        }
        let url = try #require(URL(string: "\(server.scheme)://nowhere.test/a"))
        #expect(try await session.load(url).text == "hello")
        #expect(server.requests.first?["Host"] == "nowhere.test")
        session.invalidateAndCancel()
    }

    @Test(
        arguments: [
            (.ipv4(address: 0x7F00_0001, port: 80), 4, "loopback"), (.ipv4(address: 0, port: 80), 4, "loopback"),
            (.ipv4(address: 0x0A01_0203, port: 80), 4, "private"), (.ipv4(address: 0xAC1F_0001, port: 1), 4, "private"),
            (.ipv4(address: 0xAC20_0001, port: 1), 4, "global"), (.ipv4(address: 0xC0A8_0001, port: 1), 4, "private"),
            (.ipv4(address: 0xA9FE_A9FE, port: 80), 4, "link-local"),
            (.ipv4(address: 0xC000_0201, port: 1), 4, "global"),
            (.ipv6(high: 0, low: 1, scope: 0, port: 1), 16, "loopback"),
            (.ipv6(high: 0, low: 0, scope: 0, port: 1), 16, "loopback"),
            (.ipv6(high: 0, low: 0xFFFF_7F00_0001, scope: 0, port: 1), 4, "loopback"),
            (.ipv6(high: 0, low: 0xFFFF_A9FE_A9FE, scope: 0, port: 1), 4, "link-local"),
            (.ipv6(high: 0xFE80_0000_0000_0000, low: 1, scope: 2, port: 1), 16, "link-local"),
            (.ipv6(high: 0xFD00_0000_0000_0000, low: 1, scope: 0, port: 1), 16, "private"),
            (.ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 1), 16, "global"),
        ] as [(SocketAddress, Int, String)])
    func addressIsReadFromItsText(_ socketAddress: SocketAddress, _ count: Int, _ kind: String) {
        let address = URLSessionConfiguration.ServerAddress(socketAddress)
        #expect(address.bytes.count == count)
        #expect(address.isLoopback == (kind == "loopback"))
        #expect(address.isLinkLocal == (kind == "link-local"))
        #expect(address.isPrivate == (kind == "private"))
    }
}
