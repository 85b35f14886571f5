import Foundation

/// Decides which requests would need a proxy. Proxies are not implemented: such requests fail rather than bypass it.
struct ProxyPolicy: Sendable {
    private enum Source {
        /// The schemes for which `connectionProxyDictionary` enables a proxy.
        case dictionary(Set<String>)
        case environment(ProxyEnvironment)
        /// No proxy is configured, or all connections go to a Unix socket.
        case none
    }

    /// The keys of `connectionProxyDictionary` that enable a proxy, with the schemes they apply to.
    private static let schemesByKey = [
        "HTTPEnable": ["http", "ws"], "HTTPSEnable": ["https", "wss", "stream"],
        "SOCKSEnable": ["http", "https", "ws", "wss", "stream"],
        "ProxyAutoConfigEnable": ["http", "https", "ws", "wss", "stream"],
    ]

    private let source: Source

    init(_ configuration: URLSessionConfiguration) {
        if let settings = configuration.connectionProxyDictionary {
            let isOn = { (key: String) -> Bool in
                let value = settings[key] as Any
                return (value as? Bool) ?? (value as? Int).map { $0 != 0 } ?? (value as? NSNumber)?.boolValue ?? false
            }
            self.source = .dictionary(Set(Self.schemesByKey.filter { isOn($0.key) }.flatMap(\.value)))
        } else if configuration.unixSocketPath != nil {
            self.source = .none
        } else {
            let environment = ProcessInfo.processInfo.environment
            let variables = ProxyEnvironment { environment[$0] }
            self.source = variables.isEmpty ? .none : .environment(variables)
        }
    }

    /// The error of a connection for `url` that needs a proxy; `nil` if it needs none.
    /// - Parameter scheme: of the URL, or `stream` for a stream task, to which the environment does not apply.
    func refusal(of url: URL, scheme: String) -> URLError? {
        switch self.source {
        case .none: return nil
        case .dictionary(let schemes):
            guard schemes.contains(scheme) else { return nil }
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text: "Proxies are not supported: remove them from connectionProxyDictionary.")
        case .environment(let variables):
            guard let name = variables.variable(scheme: scheme, host: url.serverName ?? "", port: url.port) else {
                return nil
            }
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text:
                    "The environment variable \(name) names a proxy, and proxies are not supported: unset it, add the "
                    + "host to no_proxy, or set connectionProxyDictionary to an empty dictionary.")
        }
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
        return self.exceptions.contains { Self.excepts($0, host, port) } ? nil : name
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
    }

    /// Whether `exception` is the host, a parent domain, or `*`; an exception with a port applies to that port only.
    private static func excepts(_ exception: String, _ host: String, _ port: Int) -> Bool {
        var name = exception[...]
        if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon {
            guard Int(name[name.index(after: colon)...]) == port else { return false }
            name = name[..<colon]
        }
        if name == "*" { return true }
        if name.hasPrefix("[") { name = name.dropFirst().prefix { $0 != "]" } }
        if name.hasPrefix(".") { name = name.dropFirst() }
        return !name.isEmpty && (host == name || host.hasSuffix("." + name))
    }
}
