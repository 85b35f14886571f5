import Foundation

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

    package init(_ kind: Kind, _ host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// - Parameter text: `[scheme://][user[:password]@]host[:port]`, user and password percent-encoded; anything behind is
    ///   ignored. Without a scheme `http`; without a port 80, 443 for `https`, 1080 for SOCKS.
    /// - Returns: `nil` if it is no such text.
    package init?(_ text: String) {
        var rest = text[...]
        var kind = Kind.http
        if let mark = rest.firstRange(of: "://") {
            guard let named = Kind(rawValue: rest[..<mark.lowerBound].lowercased()) else { return nil }
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
        guard let port = portText.isEmpty ? kind.defaultPort : UInt16(portText), port > 0 else { return nil }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        return (String(host), port)
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
    private var usesAutomaticConfiguration = false
    private var exceptions: [String] = []
    private var excludesSimpleNames = false

    package init(_ settings: [AnyHashable: Any]) {
        let credential = (settings["kCFProxyUsernameKey"] as? String, settings["kCFProxyPasswordKey"] as? String)
        for (prefix, kind) in [("HTTP", ProxyAddress.Kind.http), ("HTTPS", .http), ("SOCKS", .socks5h)]
        where Self.isOn(settings["\(prefix)Enable"]) {
            self.entries[prefix] = Self.entry(prefix, kind, settings, credential)
        }
        self.usesAutomaticConfiguration =
            Self.isOn(settings["ProxyAutoConfigEnable"]) || Self.isOn(settings["ProxyAutoDiscoveryEnable"])
        self.exceptions = (settings["ExceptionsList"] as? [String] ?? []).map { $0.lowercased() }
        self.excludesSimpleNames = Self.isOn(settings["ExcludeSimpleHostnames"])
    }

    private static func isOn(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? Int).map { $0 != 0 } ?? (value as? NSNumber)?.boolValue ?? false
    }

    private static func entry(
        _ prefix: String, _ kind: ProxyAddress.Kind, _ settings: [AnyHashable: Any], _ credential: (String?, String?)
    ) -> Entry {
        guard let text = settings["\(prefix)Proxy"] as? String, var proxy = ProxyAddress(text) else {
            return .unusable("connectionProxyDictionary has no host name at \(prefix)Proxy.")
        }
        if !text.contains("://") { proxy.kind = kind }
        let port = (settings["\(prefix)Port"] as? Int) ?? (settings["\(prefix)Port"] as? NSNumber)?.intValue
        if let port {
            guard let port = UInt16(exactly: port), port > 0 else {
                return .unusable("connectionProxyDictionary has no port from 1 to 65535 at \(prefix)Port.")
            }
            proxy.port = port
        } else if kind == .socks5h, !text.contains("://") {
            proxy.port = 1080
        }
        let (user, password) =
            prefix == "SOCKS"
            ? (settings["kCFStreamPropertySOCKSUser"], settings["kCFStreamPropertySOCKSPassword"])
            : (credential.0, credential.1)
        proxy.user = proxy.user ?? user as? String
        proxy.password = proxy.password ?? password as? String
        return .proxy(proxy)
    }

    /// - Parameter scheme: of the URL, or `stream`.
    /// - Returns: `nil` for a direct connection.
    package func proxy(scheme: String, host: String, port: Int?) throws(ProxySettingsError) -> ProxyAddress? {
        let isSecure = scheme != "http" && scheme != "ws"
        let isExcepted =
            self.excludesSimpleNames && !host.contains(".") && !host.contains(":")
            || self.exceptions.contains { HostException.matches($0, host, port ?? (isSecure ? 443 : 80)) }
        guard !isExcepted else { return nil }
        if self.usesAutomaticConfiguration {
            throw ProxySettingsError(
                text: "Automatic proxy configuration is not supported: name the proxies in connectionProxyDictionary.")
        }
        switch self.entries[isSecure ? "HTTPS" : "HTTP"] ?? self.entries["SOCKS"] {
        case .proxy(let proxy): return proxy
        case .unusable(let text): throw ProxySettingsError(text: text)
        case nil: return nil
        }
    }
}

/// A host to which connections are made without a proxy.
private enum HostException {
    /// Whether `exception` is the host, a parent domain, or `*`; an exception with a port applies to that port only.
    static func matches(_ exception: String, _ host: String, _ port: Int) -> Bool {
        var name = exception[...]
        if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon {
            guard Int(name[name.index(after: colon)...]) == port else { return false }
            name = name[..<colon]
        }
        if name == "*" { return true }
        if name.hasPrefix("[") { name = name.dropFirst().prefix { $0 != "]" } }
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        return !name.isEmpty && (host == name || host.hasSuffix("." + name))
    }
}

/// The proxy variables of the environment, as curl reads them: `http_proxy` in lower case only, because a request could
/// set `HTTP_PROXY` for a CGI program; `https_proxy`, `all_proxy` and `no_proxy` in either case. `no_proxy` lists hosts
/// and domains, with or without a port, but no networks. Loopback addresses never use a proxy.
package struct ProxyEnvironment: Sendable {
    private var proxies: [String: String] = [:]
    private var exceptions: [String] = []

    /// - Parameter value: returns the value of a variable; `nil` if it is not set.
    package init(_ value: (String) -> String?) {
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if let value = value(name), !value.isEmpty { self.proxies[name] = value }
        }
        guard !self.proxies.isEmpty, let exceptions = value("no_proxy") ?? value("NO_PROXY") else { return }
        self.exceptions = exceptions.split { $0 == "," || $0 == " " }.map { $0.lowercasedASCII }
    }

    var isEmpty: Bool { self.proxies.isEmpty }

    /// The name of the variable that sets the proxy for a host; `nil` if none does.
    /// - Parameter port: `nil` for the scheme's default port.
    package func variable(scheme: String, host: String, port: Int?) -> String? {
        let names: [String]
        switch scheme {
        case "http", "ws": names = ["http_proxy", "all_proxy", "ALL_PROXY"]
        case "https", "wss": names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        default: return nil
        }
        guard let name = names.first(where: { self.proxies[$0] != nil }), !Self.isLoopback(host) else { return nil }
        let port = port ?? (scheme == "https" || scheme == "wss" ? 443 : 80)
        return self.exceptions.contains { HostException.matches($0, host, port) } ? nil : name
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

/// The proxies of a session: those of `connectionProxyDictionary` or, if it is `nil`, of the environment.
enum ProxySettings: Sendable {
    case dictionary(ProxyDictionary)
    case environment(ProxyEnvironment)
    case none

    init(_ configuration: URLSessionConfiguration) {
        if let settings = configuration.connectionProxyDictionary {
            self = .dictionary(ProxyDictionary(settings))
        } else if configuration.unixSocketPath != nil {
            self = .none
        } else {
            let environment = ProcessInfo.processInfo.environment
            let variables = ProxyEnvironment { environment[$0] }
            self = variables.isEmpty ? .none : .environment(variables)
        }
    }

    /// - Parameter scheme: of the URL, or `stream` for a stream task, to which the environment does not apply.
    /// - Returns: `nil` for a direct connection.
    func proxy(for url: URL, scheme: String) throws(ProxySettingsError) -> ProxyAddress? {
        let (host, port) = (url.serverName?.lowercasedASCII ?? "", url.port)
        return switch self {
        case .none: nil
        case .dictionary(let proxies): try proxies.proxy(scheme: scheme, host: host, port: port)
        case .environment(let variables): try variables.proxy(scheme: scheme, host: host, port: port)
        }
    }
}
