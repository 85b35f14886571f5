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
    /// This machine has no way to the server of the proxy script.
    package var isOffline = false
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
        let credential = (settings[kCFProxyUsernameKey] as? String, settings[kCFProxyPasswordKey] as? String)
        let isSOCKS4 = settings[kCFStreamPropertySOCKSVersion] as? String == kCFStreamSocketSOCKSVersion4
        let socks = isSOCKS4 ? ProxyAddress.Kind.socks4a : .socks5h
        for (prefix, kind) in [("HTTP", ProxyAddress.Kind.http), ("HTTPS", .http), ("SOCKS", socks)]
        where Self.isOn(settings["\(prefix)Enable"]) {
            self.entries[prefix] = Self.entry(prefix, kind, settings, credential)
        }
        self.discoversScript = Self.isOn(settings[kCFNetworkProxiesProxyAutoDiscoveryEnable])
        if Self.isOn(settings[kCFNetworkProxiesProxyAutoConfigEnable]) { self.script = Self.script(settings) }
        self.exceptions = ProxyExceptions(settings[kCFNetworkProxiesExceptionsList] as? [String] ?? [])
        self.excludesSimpleNames = Self.isOn(settings[kCFNetworkProxiesExcludeSimpleHostnames])
    }

    /// Whether every connection is direct.
    var isEmpty: Bool { self.entries.isEmpty && self.script == nil && !self.discoversScript }

    private static func isOn(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? Int).map { $0 != 0 } ?? (value as? NSNumber)?.boolValue ?? false
    }

    private static func script(_ settings: [AnyHashable: Any]) -> ProxyScript.Source {
        if let text = settings[kCFNetworkProxiesProxyAutoConfigJavaScript] as? String { return .text(text) }
        let value = settings[kCFNetworkProxiesProxyAutoConfigURLString]
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
            ? (settings[kCFStreamPropertySOCKSUser], settings[kCFStreamPropertySOCKSPassword])
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

/// Servers that are reached without a proxy. An entry is a name with all names below it, with or without a leading `.`; an
/// address; a network such as `10.0.0.0/8`; or a pattern with `*` for any characters, such as `192.168.*` and `*.local`,
/// which includes `local`. An entry other than a network may have a port, and then applies to that port only.
private struct ProxyExceptions: Sendable {
    private enum Rule: Sendable {
        case name(String)
        case address(SocketAddress)
        /// - Parameter length: of the prefix, in bits.
        case network(SocketAddress, length: Int)
        /// - Parameter parts: the text between the `*`.
        case pattern(parts: [String])
    }

    private struct Entry: Sendable {
        let rule: Rule
        var port: Int?
    }

    private let entries: [Entry]

    /// Entries that are none of these are ignored.
    init(_ entries: some Sequence<String>) {
        self.entries = entries.compactMap { Self.entry($0.lowercased()) }
    }

    private static func entry(_ text: String) -> Entry? {
        if let slash = text.firstIndex(of: "/") { return self.network(text, slash).map { Entry(rule: $0) } }
        var (name, port) = (text[...], Int?.none)
        if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon || name[..<colon].hasSuffix("]") {
            guard let number = Int(name[name.index(after: colon)...]) else { return nil }
            (name, port) = (name[..<colon], number)
        }
        if name.hasPrefix("[") { name = name.dropFirst().prefix { $0 != "]" } }
        if name.contains("*") {
            let parts = name.split(separator: "*", omittingEmptySubsequences: false).map { String($0) }
            return Entry(rule: .pattern(parts: parts), port: port)
        }
        if let address = SocketAddress(literal: String(name), port: 0) {
            return Entry(rule: .address(address), port: port)
        }
        if name.hasSuffix(".") { name = name.dropLast() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        return name.isEmpty ? nil : Entry(rule: .name(String(name)), port: port)
    }

    /// Omitted bytes at the end of an IPv4 network are 0, as in `169.254/16`.
    private static func network(_ entry: String, _ slash: String.Index) -> Rule? {
        guard let length = Int(entry[entry.index(after: slash)...]), length >= 0 else { return nil }
        var text = String(entry[..<slash])
        if !text.contains(":") {
            let parts = text.split(separator: ".").count
            text += String(repeating: ".0", count: max(0, 4 - parts))
        }
        switch SocketAddress(literal: text, port: 0) {
        case .ipv4(let address, _)?:
            return length <= 32 ? .network(.ipv4(address: address, port: 0), length: length) : nil
        case .ipv6(let high, let low, _, _)?:
            return length <= 128 ? .network(.ipv6(high: high, low: low, scope: 0, port: 0), length: length) : nil
        case .unix?, nil: return nil
        }
    }

    /// - Parameter host: in lower case.
    func contain(_ host: String, _ port: Int) -> Bool {
        guard !self.entries.isEmpty else { return false }
        // The zone of an IPv6 address is no part of a name, although it may end like one.
        let address = SocketAddress(literal: host.contains(":") ? String(host.prefix { $0 != "%" }) : host, port: 0)
        guard address != nil || !host.contains(":") else { return false }
        let name = address == nil && host.hasSuffix(".") ? String(host.dropLast()) : host
        return self.entries.contains { entry in
            (entry.port == nil || entry.port == port) && Self.rule(entry.rule, contains: name, address)
        }
    }

    /// - Parameter address: `nil` for a name. Only patterns compare addresses by their text.
    private static func rule(_ rule: Rule, contains name: String, _ address: SocketAddress?) -> Bool {
        switch (rule, address) {
        case (.name(let domain), nil): name == domain || name.hasSuffix("." + domain)
        case (.address(let wanted), let address?): self.network(wanted, 128, contains: address)
        case (.network(let network, let length), let address?): self.network(network, length, contains: address)
        case (.pattern(let parts), _):
            self.pattern(parts, matches: name[...]) || parts.first == "" && parts.dropFirst() == ["." + name]
        case (.name, _?), (.address, nil), (.network, nil): false
        }
    }

    /// - Parameter length: of the prefix, in bits; all bits of an address at most.
    private static func network(_ network: SocketAddress, _ length: Int, contains address: SocketAddress) -> Bool {
        switch (network, address) {
        case (.ipv4(let network, _), .ipv4(let address, _)):
            (network ^ address) >> (32 - UInt32(min(length, 32))) == 0
        case (.ipv6(let high, let low, _, _), .ipv6(let addressHigh, let addressLow, _, _)):
            (high ^ addressHigh) >> (64 - UInt64(min(length, 64))) == 0
                && (low ^ addressLow) >> (64 - UInt64(max(length, 64) - 64)) == 0
        default: false
        }
    }

    private static func pattern(_ parts: [String], matches name: Substring) -> Bool {
        guard let first = parts.first, let last = parts.last, name.hasPrefix(first) else { return false }
        var rest = name.dropFirst(first.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(last)
    }
}

/// The proxy variables of the environment: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, of which the name in
/// lower case comes before the one in upper case. `HTTP_PROXY` is ignored in a CGI program, where a field of a request sets
/// it (RFC 3875 §4.1.18). `no_proxy` lists hosts, domains and networks as curl does, loopback addresses not excepted by
/// themselves. An empty variable means a direct connection. Only `all_proxy` applies to stream tasks.
package struct ProxyEnvironment: Sendable {
    private struct Variable: Sendable {
        /// As it is written in the environment.
        let name: String
        let value: String
    }

    private static let names: Set = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]

    /// By their names in lower case.
    private var proxies: [String: Variable] = [:]
    private var exceptions = ProxyExceptions([])

    /// All that `init` uses.
    static func variables(in environment: [String: String]) -> [String: String] {
        let isCGI = environment["REQUEST_METHOD"] != nil
        return environment.filter { variable in
            Self.names.contains { variable.key == $0 || variable.key == $0.uppercased() }
                && !(isCGI && variable.key == "HTTP_PROXY")
        }
    }

    /// - Parameter value: returns the value of a variable; `nil` if it is not set.
    package init(_ value: (String) -> String?) {
        let isCGI = value("REQUEST_METHOD") != nil
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            let names = name == "http_proxy" && isCGI ? [name] : [name, name.uppercased()]
            let variables = names.compactMap { name in value(name).map { Variable(name: name, value: $0) } }
            self.proxies[name] = variables.first
        }
        guard !self.isEmpty, let exceptions = value("no_proxy") ?? value("NO_PROXY") else { return }
        self.exceptions = ProxyExceptions(exceptions.split { ", \t".contains($0) }.map { String($0) })
    }

    var isEmpty: Bool { self.proxies.values.allSatisfy(\.value.isEmpty) }

    private func find(scheme: String, host: String, port: Int?) -> Variable? {
        let own: String?
        switch scheme {
        case "http", "ws": own = "http_proxy"
        case "https", "wss": own = "https_proxy"
        case "stream": own = nil
        default: return nil
        }
        guard let variable = own.flatMap({ self.proxies[$0] }) ?? self.proxies["all_proxy"], !variable.value.isEmpty
        else { return nil }
        let port = port ?? (scheme == "https" || scheme == "wss" ? 443 : 80)
        return self.exceptions.contain(host, port) ? nil : variable
    }

    /// The name of the variable that sets the proxy for a host; `nil` for a direct connection.
    /// - Parameter port: `nil` for the scheme's default port.
    package func variable(scheme: String, host: String, port: Int?) -> String? {
        self.find(scheme: scheme, host: host, port: port)?.name
    }

    /// - Returns: `nil` for a direct connection.
    package func proxy(scheme: String, host: String, port: Int?) throws(ProxySettingsError) -> ProxyAddress? {
        guard let variable = self.find(scheme: scheme, host: host, port: port) else { return nil }
        guard let proxy = ProxyAddress(variable.value) else {
            throw ProxySettingsError(
                text: "The environment variable \(variable.name) names no proxy, such as http://proxy.example:3128 or "
                    + "socks5h://proxy.example: correct it, or unset it.")
        }
        return proxy
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
            if let script = dictionary.script {
                self = .script(ProxyScript(script, configuration), dictionary)
            } else {
                self = dictionary.isEmpty ? .none : .dictionary(dictionary)
            }
        } else if configuration.unixSocketPath != nil {
            self = .none
        } else {
            let environment = configuration.proxyVariables ?? ProcessInfo.processInfo.environment
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
