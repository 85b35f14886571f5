import Foundation
import Synchronization
import TLSEngine
import TestSupport
import Testing
import URLLoading

@Suite("Proxies that are reached by TLS", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct SecureProxyTests {
    enum Load: CaseIterable { case forwarded, tunnelled, webSocket }

    private static func proxy() async throws -> RelayProxy {
        try await RelayProxy(tls: try Certificates.server { $0.applicationProtocols = ["http/1.1"] })
    }

    private static func settings(_ proxy: RelayProxy) -> [AnyHashable: Any] {
        ["HTTP", "HTTPS"].reduce(into: [:]) { settings, prefix in
            settings["\(prefix)Enable"] = 1
            settings["\(prefix)Proxy"] = "https://127.0.0.1:\(proxy.port)"
        }
    }

    /// Loads from a server, or opens a WebSocket.
    /// - Returns: the error.
    private func run(
        _ load: Load, _ delegate: (any URLSessionDelegate)? = nil, _ change: (URLSessionConfiguration) -> Void
    ) async throws -> URLError? {
        let session = URLSession.test(delegate, change)
        defer { session.invalidateAndCancel() }
        switch load {
        case .forwarded, .tunnelled:
            let tls = load == .tunnelled ? try Certificates.server() : nil
            let server = try await WebServer(tls: tls, ["/": .text("hello")])
            let loaded = try await session.load(server.url())
            #expect((loaded.text == "hello") == (loaded.error == nil))
            return loaded.error as? URLError
        case .webSocket:
            let server = try await ConnectionServer(WebSocketTaskTests.echo)
            let task = session.webSocketTask(with: server.url())
            task.resume()
            do {
                try await task.sendPing()
                return nil
            } catch {
                return error as? URLError
            }
        }
    }

    @Test(arguments: Load.allCases)
    func certificateIsVerifiedByTheSessionsAuthorities(_ load: Load) async throws {
        let (proxy, authority) = (try await Self.proxy(), Data(try Certificates.authority().pem.utf8))
        let error = try await self.run(load) {
            $0.connectionProxyDictionary = Self.settings(proxy)
            $0.certificateAuthorities = authority
        }
        #expect(error == nil && proxy.tunnels == 1)
    }

    @Test(arguments: Load.allCases)
    func unknownRootIsAnErrorOfTheProxy(_ load: Load) async throws {
        let proxy = try await Self.proxy()
        let error = try await self.run(load) { $0.connectionProxyDictionary = Self.settings(proxy) }
        #expect(error?.code == .serverCertificateHasUnknownRoot && proxy.tunnels == 0)
        #expect(error?.localizedDescription.contains("proxy") == true, "\(String(describing: error))")
    }

    @Test(arguments: Load.allCases)
    func delegateDecidesOnTheProxysCertificate(_ load: Load) async throws {
        let proxy = try await Self.proxy()
        let spaces = Mutex<[URLProtectionSpace]>([])
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            spaces.withLock { $0.append(challenge.protectionSpace) }
            Policies.trust(challenge, answer)
        }
        let error = try await self.run(load, DataRecorder(policies)) {
            $0.connectionProxyDictionary = Self.settings(proxy)
        }
        #expect(error == nil && proxy.tunnels == 1)
        let space = try #require(spaces.withLock { $0 }.first)
        #expect(space.isProxy() && space.proxyType == NSURLProtectionSpaceHTTPSProxy && space.protocol == nil)
        #expect(space.host == "127.0.0.1" && space.port == proxy.port && space.receivesCredentialSecurely)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
        #expect(space.serverTrust?.certificates.first == (try Certificates.serverDER()))
        // The server behind the tunnel is asked about by itself.
        #expect(spaces.withLock { $0.map { $0.isProxy() } } == (load == .tunnelled ? [true, false] : [true]))
    }

    @Test(arguments: Load.allCases)
    func delegateMayCancelOrReject(_ load: Load) async throws {
        let (proxy, authority) = (try await Self.proxy(), Data(try Certificates.authority().pem.utf8))
        for disposition in [
            URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, .rejectProtectionSpace,
        ] {
            var policies = Policies()
            policies.sessionChallenge = { $1(disposition, nil) }
            let error = try await self.run(load, DataRecorder(policies)) {
                $0.connectionProxyDictionary = Self.settings(proxy)
                $0.certificateAuthorities = authority
            }
            #expect((error?.code == .cancelled) == (disposition == .cancelAuthenticationChallenge))
            #expect(error != nil && proxy.tunnels == 0)
        }
    }

    @Test func proxyMayAskForACertificate() async throws {
        let identity = try Certificates.clientIdentity()
        let proxy = try await RelayProxy(
            tls: try Certificates.server {
                $0.applicationProtocols = ["http/1.1"]
                $0.peerVerification = .required
            })
        let isProxys = Mutex<[Bool]>([])
        var policies = Policies.trusting
        policies.sessionChallenge = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                return Policies.trust(challenge, answer)
            }
            isProxys.withLock { $0.append(challenge.protectionSpace.isProxy()) }
            answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .none))
        }
        let error = try await self.run(.tunnelled, DataRecorder(policies)) {
            $0.connectionProxyDictionary = Self.settings(proxy)
        }
        #expect(error == nil && proxy.tunnels == 1 && isProxys.withLock { $0 } == [true])
    }

    @Test func proxyConfigurationMayHaveTLS() async throws {
        let (proxy, authority) = (try await Self.proxy(), Data(try Certificates.authority().pem.utf8))
        let port = try #require(NWEndpoint.Port(rawValue: UInt16(proxy.port)))
        let error = try await self.run(.forwarded) {
            $0.proxyConfigurations = [
                ProxyConfiguration(
                    httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: port), tlsOptions: NWProtocolTLS.Options())
            ]
            $0.certificateAuthorities = authority
        }
        #expect(error == nil && proxy.tunnels == 1)
    }
}
