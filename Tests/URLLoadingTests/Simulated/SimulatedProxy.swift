import Foundation
import StreamTransport
import TestSupport
import URLLoading

/// How the session of a seeded run reaches its server.
enum SimulatedRoute: CaseIterable {
    case direct
    /// Through a proxy that gets the requests in absolute form.
    case forwarding
    /// By `CONNECT`.
    case tunnel
    case socks
}

/// A proxy of scripted peers, which relays each connection to the simulated server.
final class SimulatedProxy {
    private static let credential = (user: "proxy", password: "secret")
    private static let watermark = 16_384

    private(set) var complaints: [String] = []
    /// The number of connections that reached the server.
    private(set) var relayedCount = 0
    private let route: SimulatedRoute
    private let asksForPassword: Bool
    private let host: ScriptedHost
    private let listener: ScriptedListener
    private let server: SocketAddress
    private var relays: [Relay] = []

    private final class Relay {
        enum Stage {
            case beginning, authenticating, requesting, connecting, open, refused
        }

        let client: ScriptedPeer
        var server: ScriptedPeer?
        var stage = Stage.beginning
        /// What the client has sent before the server was reached.
        var input: [UInt8] = []
        /// The directions that were ended at their target.
        var didEndInput = false
        var didEndOutput = false

        init(_ client: ScriptedPeer) { self.client = client }
    }

    /// - Parameters:
    ///   - asksForPassword: of a tunnel.
    ///   - host: runs the proxy.
    init(_ route: SimulatedRoute, asksForPassword: Bool, to server: SocketAddress, on host: ScriptedHost) throws {
        self.route = route
        self.asksForPassword = asksForPassword
        self.host = host
        self.server = server
        self.listener = try host.listen(at: .ipv4(address: 0x0A01_0002, port: 0))
    }

    /// Makes `configuration` use the proxy.
    func configure(_ configuration: URLSessionConfiguration) {
        guard let number = self.listener.address.port, let port = NWEndpoint.Port(rawValue: number) else { return }
        let endpoint = NWEndpoint.hostPort(host: "10.1.0.2", port: port)
        var proxy: ProxyConfiguration
        switch self.route {
        case .direct: return
        case .forwarding:
            configuration.connectionProxyDictionary = [
                kCFNetworkProxiesHTTPEnable: 1, kCFNetworkProxiesHTTPProxy: "10.1.0.2",
                kCFNetworkProxiesHTTPPort: Int(number),
            ]
            return
        case .tunnel: proxy = ProxyConfiguration(httpCONNECTProxy: endpoint)
        case .socks: proxy = ProxyConfiguration(socksv5Proxy: endpoint)
        }
        let (user, password) = Self.credential
        if self.asksForPassword { proxy.applyCredential(username: user, password: password) }
        configuration.proxyConfigurations = [proxy]
    }

    /// Called in each step of the simulation.
    func step() {
        for peer in self.listener.accepted.dropFirst(self.relays.count) { self.relays.append(Relay(peer)) }
        for relay in self.relays where !(relay.client.isClosed && relay.server?.isClosed ?? true) { self.step(relay) }
    }

    private func step(_ relay: Relay) {
        if let server = relay.server, relay.stage == .open { return self.pass(relay, server) }
        relay.input += relay.client.takeReceived()
        guard relay.client.failure == nil, !relay.client.isClosed, !relay.client.sawEnd else {
            relay.client.close()
            relay.server?.close()
            return
        }
        switch relay.stage {
        case .beginning, .authenticating, .requesting: self.negotiate(relay)
        case .connecting: self.connecting(relay)
        case .open, .refused: break
        }
    }

    // MARK: Negotiating

    private func negotiate(_ relay: Relay) {
        switch self.route {
        case .direct: break
        case .forwarding: if !relay.input.isEmpty { self.connect(relay) }
        case .tunnel: self.readHead(relay)
        case .socks: self.readSOCKS(relay)
        }
    }

    private func readHead(_ relay: Relay) {
        let text = String(decoding: relay.input, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        if !text[end.upperBound...].isEmpty { self.complaints.append("bytes before the tunnel: \(text)") }
        relay.input = []
        let port = self.server.port ?? 0
        if !["one", "two"].contains(where: { lines[0] == "CONNECT \($0).test:\(port) HTTP/1.1" }) {
            self.complaints.append("the proxy got \(text)")
        }
        let token = Data("\(Self.credential.user):\(Self.credential.password)".utf8).base64EncodedString()
        guard self.asksForPassword, !lines.contains("Proxy-Authorization: Basic \(token)") else {
            return self.connect(relay)
        }
        let challenge = "HTTP/1.1 407 Password\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n"
        relay.client.send(challenge)
    }

    /// RFC 1928, RFC 1929.
    private func readSOCKS(_ relay: Relay) {
        if relay.stage == .beginning, let count = relay.input.dropFirst().first, relay.input.count >= 2 + Int(count) {
            let method: UInt8 = self.asksForPassword ? 2 : 0
            if !relay.input[2...].prefix(Int(count)).contains(method) { self.complaints.append("no SOCKS method") }
            relay.input.removeFirst(2 + Int(count))
            relay.stage = self.asksForPassword ? .authenticating : .requesting
            relay.client.send([5, method])
        }
        let (user, password) = (Array(Self.credential.user.utf8), Array(Self.credential.password.utf8))
        let login = [1, UInt8(user.count)] + user + [UInt8(password.count)] + password
        if relay.stage == .authenticating, relay.input.count >= login.count {
            if !relay.input.starts(with: login) { self.complaints.append("SOCKS login \(relay.input)") }
            relay.input.removeFirst(login.count)
            relay.stage = .requesting
            relay.client.send([1, 0])
        }
        guard relay.stage == .requesting, relay.input.count >= 15 else { return }
        let port = self.server.port.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } ?? []
        let requests = ["one.test", "two.test"].map { [5, 1, 0, 3, 8] + Array($0.utf8) + port }
        if !requests.contains(relay.input) { self.complaints.append("SOCKS request \(relay.input)") }
        relay.input = []
        self.connect(relay)
    }

    private func connect(_ relay: Relay) {
        relay.stage = .connecting
        do {
            relay.server = try self.host.connect(to: self.server)
        } catch {
            self.refuse(relay)
        }
    }

    private func connecting(_ relay: Relay) {
        guard let server = relay.server, server.failure == nil, !server.isClosed else { return self.refuse(relay) }
        guard server.isConnected else { return }
        relay.stage = .open
        self.relayedCount += 1
        switch self.route {
        case .direct, .forwarding: break
        case .tunnel: relay.client.send("HTTP/1.1 200 Connected\r\n\r\n")
        case .socks: relay.client.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        }
        // Only of a request to be forwarded.
        server.send(relay.input)
        relay.input = []
        self.pass(relay, server)
    }

    private func refuse(_ relay: Relay) {
        relay.stage = .refused
        relay.server?.close()
        switch self.route {
        case .direct, .forwarding: break
        case .tunnel: relay.client.send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        case .socks: relay.client.send([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
        }
        relay.client.finish()
    }

    // MARK: Relaying

    private func pass(_ relay: Relay, _ server: ScriptedPeer) {
        let client = relay.client
        Self.pass(client, to: server, &relay.didEndInput)
        Self.pass(server, to: client, &relay.didEndOutput)
        guard client.sawEnd, server.sawEnd, client.unsentBytes == 0, server.unsentBytes == 0 else { return }
        client.close()
        server.close()
    }

    /// Passes the bytes and the end of one direction.
    private static func pass(_ source: ScriptedPeer, to target: ScriptedPeer, _ hasEnded: inout Bool) {
        let bytes = source.takeReceived()
        if !target.isClosed, !bytes.isEmpty { target.send(bytes) }
        if source.failure != nil {
            source.close()
            target.reset()
        } else if source.sawEnd || source.isClosed, !hasEnded {
            hasEnded = true
            target.finish()
        }
        let isReading = target.unsentBytes < Self.watermark
        if !source.isClosed, source.isReading != isReading { source.isReading = isReading }
    }
}
