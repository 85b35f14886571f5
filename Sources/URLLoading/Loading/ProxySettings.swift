import Foundation
import StreamTransport
import WireText

/// A proxy, as a program or the environment names it.
package struct ProxyAddress: Hashable, Sendable {
    package enum Kind: String, Sendable {
        case http
        /// HTTP over TLS with the proxy itself.
        case https
        /// SOCKS 4 and 5; with names resolved here.
        case socks4, socks5
        /// The same; the proxy resolves names.
        case socks4a, socks5h
    }

    package var kind: Kind
    /// Without brackets.
    package var host: String
    package var port: UInt16
    package var user: String?
    package var password: String?
    /// Whether an HTTP proxy is asked for a tunnel to `http` URLs too.
    package var alwaysTunnels = false

    package init(_ kind: Kind, _ host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// - Parameter text: `[scheme://][user[:password]@]host[:port]`, user and password percent-encoded; anything behind is
    ///   ignored. The scheme is that of a `Kind`, or `socks` for SOCKS 4. Without a scheme `http`; without a port 80, 443 for
    ///   `https`, 1080 for SOCKS.
    /// - Returns: `nil` if it is no such text, or the host cannot be that of a URL.
    package init?(_ text: String) {
        var rest = text[...]
        var kind = Kind.http
        if let mark = rest.firstRange(of: "://") {
            let name = rest[..<mark.lowerBound].lowercased()
            guard let named = name == "socks" ? .socks4 : Kind(rawValue: name) else { return nil }
            kind = named
            rest = rest[mark.upperBound...]
        }
        rest = rest.prefix { !"/?#".contains($0) }
        var userInfo: [String?] = []
        if let at = rest.lastIndex(of: "@") {
            userInfo = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.removingPercentEncoding }
            guard !userInfo.contains(nil) else { return nil }
            rest = rest[rest.index(after: at)...]
        }
        guard let (host, port) = Self.hostAndPort(rest, of: kind) else { return nil }
        let password = userInfo.count > 1 ? userInfo[1] : nil
        self.init(kind, host, port: port, user: userInfo.first ?? nil, password: password)
    }

    private static func hostAndPort(_ text: Substring, of kind: Kind) -> (String, UInt16)? {
        var (host, portText) = (text, Substring())
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[..<end].dropFirst()
            portText = text[text.index(after: end)...]
            guard portText.isEmpty || portText.hasPrefix(":") else { return nil }
        } else if let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            portText = text[colon...]
        }
        portText = portText.dropFirst()
        guard portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = portText.isEmpty ? kind.defaultPort : UInt16(portText), port > 0,
            Self.canBeInURL(String(host))
        else { return nil }
        return (String(host), port)
    }

    /// - Parameter host: without brackets.
    static func canBeInURL(_ host: String) -> Bool {
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return false }
        let text = host.contains(":") ? "[\(host)]" : host
        return URL(string: "http://\(text)/")?.serverName?.isEmpty == false
    }
}

extension ProxyAddress.Kind {
    fileprivate var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        case .socks4, .socks4a, .socks5, .socks5h: 1080
        }
    }
}

/// Why the proxy for a URL cannot be used.
package struct ProxySettingsError: Error, Hashable, Sendable {
    package let text: String
}

/// The proxies of `connectionProxyDictionary` (CFNetwork's keys).
package struct ProxyDictionary: Sendable {
    private enum Entry: Sendable {
        case proxy(ProxyAddress)
        case unusable(String)
    }

    /// By the prefix of their keys.
    private var entries: [String: Entry] = [:]
    /// The script that chooses the proxies (PAC).
    package private(set) var script: ProxyScript.Source?
    private var discoversScript = false
    private var exceptions = ProxyExceptions([])
    private var excludesSimpleNames = false

    package init(_ settings: [AnyHashable: Any]) {
        let credential = (settings["kCFProxyUsernameKey"] as? String, settings["kCFProxyPasswordKey"] as? String)
        let isSOCKS4 = settings["kCFStreamPropertySOCKSVersion"] as? String == "kCFStreamSocketSOCKSVersion4"
        let socks = isSOCKS4 ? ProxyAddress.Kind.socks4a : .socks5h
        for (prefix, kind) in [("HTTP", ProxyAddress.Kind.http), ("HTTPS", .http), ("SOCKS", socks)]
        where Self.isOn(settings["\(prefix)Enable"]) {
            self.entries[prefix] = Self.entry(prefix, kind, settings, credential)
        }
        self.discoversScript = Self.isOn(settings["ProxyAutoDiscoveryEnable"])
        if Self.isOn(settings["ProxyAutoConfigEnable"]) { self.script = Self.script(settings) }
        self.exceptions = ProxyExceptions(settings["ExceptionsList"] as? [String] ?? [])
        self.excludesSimpleNames = Self.isOn(settings["ExcludeSimpleHostnames"])
    }

    private static func isOn(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? Int).map { $0 != 0 } ?? (value as? NSNumber)?.boolValue ?? false
    }

    private static func script(_ settings: [AnyHashable: Any]) -> ProxyScript.Source {
        if let text = settings["ProxyAutoConfigJavaScript"] as? String { return .text(text) }
        let value = settings["ProxyAutoConfigURLString"]
        guard let url = (value as? URL) ?? (value as? String).flatMap({ URL(string: $0) }), url.scheme != nil else {
            return .unusable("connectionProxyDictionary has no URL of a script at ProxyAutoConfigURLString.")
        }
        return .url(url)
    }

    private static func entry(
        _ prefix: String, _ kind: ProxyAddress.Kind, _ settings: [AnyHashable: Any], _ credential: (String?, String?)
    ) -> Entry {
        guard let text = settings["\(prefix)Proxy"] as? String, var proxy = Self.address(text, prefix, kind) else {
            return .unusable("connectionProxyDictionary has no host name at \(prefix)Proxy.")
        }
        let port = (settings["\(prefix)Port"] as? Int) ?? (settings["\(prefix)Port"] as? NSNumber)?.intValue
        if let port {
            guard let port = UInt16(exactly: port), port > 0 else {
                return .unusable("connectionProxyDictionary has no port from 1 to 65535 at \(prefix)Port.")
            }
            proxy.port = port
        }
        let (user, password) =
            prefix == "SOCKS"
            ? (settings["kCFStreamPropertySOCKSUser"], settings["kCFStreamPropertySOCKSPassword"])
            : (credential.0, credential.1)
        proxy.user = proxy.user ?? user as? String
        proxy.password = proxy.password ?? password as? String
        return .proxy(proxy)
    }

    /// - Parameter text: a URL, or a host alone, in which an IPv6 address has no brackets.
    private static func address(_ text: String, _ prefix: String, _ kind: ProxyAddress.Kind) -> ProxyAddress? {
        if text.contains("://") { return ProxyAddress(text) }
        let host = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
        guard ProxyAddress.canBeInURL(host) else { return nil }
        return ProxyAddress(kind, host, port: prefix == "HTTPS" ? 443 : kind.defaultPort)
    }

    /// Whether the host is reached without any proxy.
    package func excepts(scheme: String, host: String, port: Int?) -> Bool {
        self.excludesSimpleNames && !host.contains(".") && !host.contains(":")
            || self.exceptions.contain(host, port ?? (Self.isSecure(scheme) ? 443 : 80))
    }

    private static func isSecure(_ scheme: String) -> Bool { scheme != "http" && scheme != "ws" }

    /// The proxy where no script chooses.
    /// - Parameter scheme: of the URL, or `stream`.
    /// - Returns: `nil` for a direct connection.
    package func proxy(scheme: String, host: String, port: Int?) throws(ProxySettingsError) -> ProxyAddress? {
        let isSecure = Self.isSecure(scheme)
        guard !self.excepts(scheme: scheme, host: host, port: port) else { return nil }
        if self.discoversScript {
            throw ProxySettingsError(
                text: "Discovery of a proxy script is not supported: name the script at ProxyAutoConfigURLString in "
                    + "connectionProxyDictionary.")
        }
        switch self.entries[isSecure ? "HTTPS" : "HTTP"] ?? self.entries["SOCKS"] {
        case .proxy(let proxy): return proxy
        case .unusable(let text): throw ProxySettingsError(text: text)
        case nil: return nil
        }
    }
}

/// Servers that are reached without a proxy. An entry is a host or a domain, with or without a leading `.` or `*.`, a
/// network such as `10.0.0.0/8`, or `*`; a host or domain may have a port, and then applies to that port only.
private struct ProxyExceptions: Sendable {
    /// Further entries are ignored.
    private static let limit = 1024

    private let entries: [String]

    init(_ entries: some Sequence<String>) {
        self.entries = entries.prefix(Self.limit).map { $0.lowercased() }
    }

    /// - Parameter host: in lower case.
    func contain(_ host: String, _ port: Int) -> Bool {
        guard !self.entries.isEmpty else { return false }
        let address = SocketAddress(literal: host, port: 0)
        return self.entries.contains { entry in
            guard let slash = entry.firstIndex(of: "/") else { return Self.matches(entry, host, port) }
            return address.map { Self.network(entry, slash, contains: $0) } ?? false
        }
    }

    private static func matches(_ entry: String, _ host: String, _ port: Int) -> Bool {
        var name = entry[...]
        if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon || name[..<colon].hasSuffix("]") {
            guard Int(name[name.index(after: colon)...]) == port else { return false }
            name = name[..<colon]
        }
        if name == "*" { return true }
        if name.hasPrefix("[") { name = name.dropFirst().prefix { $0 != "]" } }
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        return !name.isEmpty && (host == name || host.hasSuffix("." + name))
    }

    /// Omitted bytes at the end of an IPv4 network are 0, as in `169.254/16`.
    private static func network(_ entry: String, _ slash: String.Index, contains address: SocketAddress) -> Bool {
        guard let length = Int(entry[entry.index(after: slash)...]), length >= 0 else { return false }
        var text = String(entry[..<slash])
        if !text.contains(":") {
            let parts = text.split(separator: ".").count
            text += String(repeating: ".0", count: max(0, 4 - parts))
        }
        switch (SocketAddress(literal: text, port: 0), address) {
        case (.ipv4(let network, _)?, .ipv4(let address, _)):
            return length <= 32 && (network ^ address) >> (32 - UInt32(length)) == 0
        case (.ipv6(let high, let low, _, _)?, .ipv6(let addressHigh, let addressLow, _, _)):
            guard length <= 128 else { return false }
            return (high ^ addressHigh) >> (64 - UInt64(min(length, 64))) == 0
                && (low ^ addressLow) >> (64 - UInt64(max(length, 64) - 64)) == 0
        default: return false
        }
    }
}

/// The proxy variables of the environment, with curl's names: `http_proxy` in lower case only, because a request could
/// set `HTTP_PROXY` for a CGI program; `https_proxy`, `all_proxy` and `no_proxy` in either case. `no_proxy` lists hosts,
/// domains and networks. Only `all_proxy` applies to stream tasks. Loopback addresses never use a proxy.
package struct ProxyEnvironment: Sendable {
    private var proxies: [String: String] = [:]
    private var exceptions = ProxyExceptions([])

    /// - Parameter value: returns the value of a variable; `nil` if it is not set.
    package init(_ value: (String) -> String?) {
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if let value = value(name), !value.isEmpty { self.proxies[name] = value }
        }
        guard !self.proxies.isEmpty, let exceptions = value("no_proxy") ?? value("NO_PROXY") else { return }
        self.exceptions = ProxyExceptions(exceptions.split { $0 == "," || $0 == " " }.map { String($0) })
    }

    var isEmpty: Bool { self.proxies.isEmpty }

    /// The name of the variable that sets the proxy for a host; `nil` if none does.
    /// - Parameter port: `nil` for the scheme's default port.
    package func variable(scheme: String, host: String, port: Int?) -> String? {
        let names: [String]
        switch scheme {
        case "http", "ws": names = ["http_proxy", "all_proxy", "ALL_PROXY"]
        case "https", "wss": names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        case "stream": names = ["all_proxy", "ALL_PROXY"]
        default: return nil
        }
        guard let name = names.first(where: { self.proxies[$0] != nil }), !Self.isLoopback(host) else { return nil }
        let port = port ?? (scheme == "https" || scheme == "wss" ? 443 : 80)
        return self.exceptions.contain(host, port) ? nil : name
    }

    /// - Returns: `nil` for a direct connection.
    package func proxy(scheme: String, host: String, port: Int?) throws(ProxySettingsError) -> ProxyAddress? {
        guard let name = self.variable(scheme: scheme, host: host, port: port) else { return nil }
        guard let proxy = self.proxies[name].flatMap({ ProxyAddress($0) }) else {
            throw ProxySettingsError(
                text: "The environment variable \(name) names no proxy, such as http://proxy.example:3128 or "
                    + "socks5h://proxy.example: correct it, or unset it.")
        }
        return proxy
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
    }
}

/// The proxies of a session: those of `proxyConfigurations`, else of `connectionProxyDictionary` or, if it is `nil`, of the
/// environment.
enum ProxySettings: Sendable {
    case configurations([ProxyConfiguration])
    case dictionary(ProxyDictionary)
    case script(ProxyScript, ProxyDictionary)
    case environment(ProxyEnvironment)
    case none

    init(_ configuration: URLSessionConfiguration) {
        if !configuration.proxyConfigurations.isEmpty {
            self = .configurations(configuration.proxyConfigurations)
        } else if let settings = configuration.connectionProxyDictionary {
            let dictionary = ProxyDictionary(settings)
            self =
                dictionary.script.map { .script(ProxyScript($0, configuration), dictionary) } ?? .dictionary(dictionary)
        } else if configuration.unixSocketPath != nil {
            self = .none
        } else {
            let environment = ProcessInfo.processInfo.environment
            let variables = ProxyEnvironment { environment[$0] }
            self = variables.isEmpty ? .none : .environment(variables)
        }
    }

    /// Decides on the ways to a server.
    /// - Parameters:
    ///   - scheme: of the URL, or `stream` for a stream task.
    ///   - completion: called once, on any thread, possibly at once; with the proxies to try in their order, `nil` among
    ///     them for a direct connection.
    func routes(
        to url: URL, scheme: String,
        _ completion: @escaping @Sendable (Result<[ProxyAddress?], ProxySettingsError>) -> Void
    ) {
        let (host, port) = (url.serverName?.loweredASCII ?? "", url.port)
        do throws(ProxySettingsError) {
            switch self {
            case .none: completion(.success([nil]))
            case .configurations(let list): completion(.success(try list.routes(to: host)))
            case .dictionary(let proxies):
                completion(.success([try proxies.proxy(scheme: scheme, host: host, port: port)]))
            case .script(_, let proxies) where proxies.excepts(scheme: scheme, host: host, port: port):
                completion(.success([nil]))
            case .script(let script, _): script.ask(url, scheme: scheme, host: host, completion)
            case .environment(let variables):
                completion(.success([try variables.proxy(scheme: scheme, host: host, port: port)]))
            }
        } catch {
            completion(.failure(error))
        }
    }
}
