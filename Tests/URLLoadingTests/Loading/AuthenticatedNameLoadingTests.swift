import Foundation
import StreamTransport
import Synchronization
import Testing
import URLLoading

@Suite("Loading with DNSSEC", .loading, .timeLimit(.minutes(20)))
struct AuthenticatedNameLoadingTests {
    enum Setting: CaseIterable { case session, request }

    /// Counts the lookups.
    private final class Names: Sendable {
        let asked = Mutex<[String]>([])

        func resolve(to port: Int, fails: Bool = false) -> ConnectAttempt.Resolve {
            { host, _, answer in
                self.asked.withLock { $0.append(host) }
                answer(
                    fails
                        ? .failure(.notAuthenticated("no signature"))
                        : .success([.ipv4(address: 0x7F00_0001, port: UInt16(clamping: port))]))
            }
        }

        var hosts: [String] { self.asked.withLock { $0 } }
    }

    @Test(.onlyDirect("a proxy looks the name up"), arguments: Setting.allCases)
    func authenticatedNameIsLoaded(_ setting: Setting) async throws {
        let server = try await WebServer(["/": .text("hello")])
        let (names, plainNames) = (Names(), Names())
        let session = URLSession.test {
            $0.requiresDNSSECValidation = setting == .session
            $0.resolve = plainNames.resolve(to: server.port)
            $0.resolveAuthenticated = names.resolve(to: server.port)
        }
        var request = URLRequest(url: try #require(URL(string: "\(server.scheme)://signed.test:\(server.port)/")))
        // A connection to an address that was not authenticated is not used.
        if setting == .request { #expect(try await session.load(request).text == "hello") }
        request.requiresDNSSECValidation = setting == .request
        for _ in 0..<2 { #expect(try await session.load(request).text == "hello") }
        #expect(names.hosts == ["signed.test"] && plainNames.hosts.count == (setting == .request ? 1 : 0))
        session.invalidateAndCancel()
    }

    @Test(.onlyDirect("a proxy looks the name up")) func nameThatIsNotAuthenticatedFails() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test {
            $0.requiresDNSSECValidation = true
            $0.resolveAuthenticated = Names().resolve(to: server.port, fails: true)
        }
        let url = try #require(URL(string: "\(server.scheme)://unsigned.test:\(server.port)/"))
        let error = try await session.load(url).error as? URLError
        #expect(error?.code == .dnsLookupFailed && error?.failingURL == url)
        #expect(error?.localizedDescription.contains("no signature") == true)
        let socket = session.webSocketTask(with: try #require(URL(string: "ws://unsigned.test:\(server.port)/")))
        socket.resume()
        let refused = await #expect(throws: URLError.self) { try await socket.receive() }
        #expect(refused?.code == .dnsLookupFailed)
        let stream = session.streamTask(withHostName: "unsigned.test", port: server.port)
        stream.resume()
        let failed = await #expect(throws: URLError.self) {
            try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 60)
        }
        #expect(failed?.code == .dnsLookupFailed)
        // An address has no name to authenticate.
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.connections == 1)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func proxyGetsAnAuthenticatedAddress() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let proxy = try await RelayProxy()
        let names = Names()
        let session = URLSession.test(DataRecorder(.trusting)) {
            $0.requiresDNSSECValidation = true
            $0.resolveAuthenticated = names.resolve(to: server.port)
            $0.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port, "HTTPSEnable": 1,
                "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port,
            ]
        }
        let url = try #require(URL(string: "https://localhost.test:\(server.port)/"))
        #expect(try await session.load(url).text == "hello")
        #expect(names.hosts == ["localhost.test"] && proxy.tunnels == 1)
        // A proxy that forwards the request looks the name up itself.
        let forwarded = try #require(URL(string: "http://localhost.test:\(server.port)/"))
        #expect(try await session.load(forwarded).code == .dnsLookupFailed)
        #expect(proxy.tunnels == 1)
        session.invalidateAndCancel()
    }
}
