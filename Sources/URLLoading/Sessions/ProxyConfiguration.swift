import Foundation
import StreamTransport

/// A proxy of `URLSessionConfiguration.proxyConfigurations`, as in Apple's Network framework. Oblivious HTTP and relays do not
/// exist here.
public struct ProxyConfiguration: Sendable {
    private let kind: ProxyAddress.Kind
    private let endpoint: NWEndpoint
    private var credential: (user: String, password: String)?

    /// Whether a server is connected to directly when no proxy can be reached. If several proxies apply to a server, each
    /// of them must allow it. A proxy that refuses a connection never leads to a direct one. Default `false`.
    public var allowFailover = false
    /// Domains whose servers are reached through the proxy, such as `example.com`, which includes its subdomains. Empty, the
    /// default, means all.
    public var matchDomains: [String] = []
    /// Domains whose servers are not reached through the proxy. Default: none.
    public var excludedDomains: [String] = []

    /// A proxy that is asked for a tunnel (`CONNECT`, RFC 9110 §9.3.6) to each server, those of `http` URLs included.
    /// - Parameter tlsOptions: secure the connection to the proxy itself; `nil` for none.
    public init(httpCONNECTProxy endpoint: NWEndpoint, tlsOptions: NWProtocolTLS.Options? = nil) {
        self.kind = tlsOptions == nil ? .http : .https
        self.endpoint = endpoint
    }

    /// A proxy by RFC 1928. It resolves the servers' names.
    public init(socksv5Proxy endpoint: NWEndpoint) {
        self.kind = .socks5h
        self.endpoint = endpoint
    }

    /// Sets the user and the password that the proxy gets when it asks.
    public mutating func applyCredential(username: String, password: String) {
        self.credential = (username, password)
    }

    fileprivate func applies(to host: String) -> Bool {
        !self.excludedDomains.contains { Self.domain($0, contains: host) }
            && (self.matchDomains.isEmpty || self.matchDomains.contains { Self.domain($0, contains: host) })
    }

    private static func domain(_ domain: String, contains host: String) -> Bool {
        var name = domain.lowercased()[...]
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        if name.hasSuffix(".") { name = name.dropLast() }
        let host = host.hasSuffix(".") ? host.dropLast() : host[...]
        guard !name.isEmpty else { return false }
        // An address has no domain.
        return host == name || host.hasSuffix("." + name) && SocketAddress(literal: String(host), port: 0) == nil
    }

    fileprivate func address() throws(ProxySettingsError) -> ProxyAddress {
        guard let (host, port) = self.endpoint.hostAndPort, port > 0, ProxyAddress.canBeInURL(host) else {
            throw ProxySettingsError(
                text: "proxyConfigurations has a proxy without a host name or a port: \(self.endpoint).")
        }
        var proxy = ProxyAddress(
            self.kind, host, port: port, user: self.credential?.user, password: self.credential?.password)
        proxy.alwaysTunnels = true
        return proxy
    }
}

extension [ProxyConfiguration] {
    /// - Parameter host: in lower case.
    func routes(to host: String) throws(ProxySettingsError) -> [ProxyAddress?] {
        let list = self.filter { $0.applies(to: host) }
        var routes: [ProxyAddress?] = []
        for proxy in list { routes.append(try proxy.address()) }
        // A direct connection also without any proxy that applies.
        if list.allSatisfy(\.allowFailover) { routes.append(nil) }
        return routes
    }
}

/// The address of a proxy, as in Apple's Network framework.
public enum NWEndpoint: Hashable, Sendable, CustomDebugStringConvertible {
    /// A name or an address, without brackets.
    public struct Host: Hashable, Sendable, ExpressibleByStringLiteral, CustomDebugStringConvertible {
        fileprivate let text: String

        public init(_ string: String) {
            let isBracketed = string.hasPrefix("[") && string.hasSuffix("]")
            self.text = isBracketed ? String(string.dropFirst().dropLast()) : string
        }

        public init(stringLiteral value: String) { self.init(value) }

        public var debugDescription: String { self.text }
    }

    public struct Port: Hashable, Sendable, RawRepresentable, ExpressibleByIntegerLiteral, CustomDebugStringConvertible
    {
        public static let any: Port = 0
        public static let http: Port = 80
        public static let https: Port = 443
        public static let socks: Port = 1080

        public let rawValue: UInt16

        public init?(rawValue: UInt16) { self.rawValue = rawValue }

        /// - Parameter service: a number in decimal.
        public init?(_ service: String) {
            guard let number = UInt16(service) else { return nil }
            self.rawValue = number
        }

        public init(integerLiteral value: UInt16) { self.rawValue = value }

        public var debugDescription: String { "\(self.rawValue)" }
    }

    case hostPort(host: Host, port: Port)
    /// Host and port of a URL; without a port that of its scheme, if it is `http` or `https`.
    case url(URL)

    fileprivate var hostAndPort: (String, UInt16)? {
        switch self {
        case .hostPort(let host, let port): return (host.text, port.rawValue)
        case .url(let url):
            let known = ["http": 80, "https": 443]
            guard let host = url.serverName, let number = url.port ?? url.scheme.flatMap({ known[$0.lowercased()] })
            else { return nil }
            return UInt16(exactly: number).map { (host, $0) }
        }
    }

    public var debugDescription: String {
        switch self {
        case .hostPort(let host, let port): host.text.contains(":") ? "[\(host.text)]:\(port)" : "\(host):\(port)"
        case .url(let url): url.absoluteString
        }
    }
}

/// TLS, as in Apple's Network framework.
public enum NWProtocolTLS {
    /// TLS with the session's settings: its lowest and highest version, and its certificate authorities.
    public final class Options: Sendable {
        public init() {}
    }
}
