import Foundation

/// Whether requests are to go through a proxy, which is still to come: they fail then, and do not go around it.
struct ProxyPolicy: Sendable {
    private enum Source {
        /// Schemes for which `connectionProxyDictionary` turns a proxy on.
        case dictionary(Set<String>)
        case environment(ProxyEnvironment)
        /// All connections go to a Unix socket.
        case none
    }

    /// Keys of `connectionProxyDictionary` that turn a proxy on, for which schemes.
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

    /// Why a connection for `url` is not made; `nil` where no proxy is wanted.
    /// - Parameter scheme: of the URL, or `stream` for a stream task, which no variable of the environment is about.
    func refusal(of url: URL, scheme: String) -> URLError? {
        switch self.source {
        case .none: return nil
        case .dictionary(let schemes):
            guard schemes.contains(scheme) else { return nil }
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text: "Proxies are not there yet: take them out of connectionProxyDictionary.")
        case .environment(let variables):
            guard let name = variables.variable(scheme: scheme, host: url.serverName ?? "", port: url.port) else {
                return nil
            }
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text:
                    "The environment names a proxy in \(name), and proxies are not there yet: unset it, name the host "
                    + "in no_proxy, or set connectionProxyDictionary to an empty dictionary.")
        }
    }
}

/// The variables by which the environment names proxies, as with curl: `http_proxy` in small letters alone, since a
/// server's request could set `HTTP_PROXY` for a CGI program; `https_proxy`, `all_proxy` and `no_proxy` in either.
/// `no_proxy` has hosts and domains, with or without a port, and no networks. Loopback is never behind a proxy.
package struct ProxyEnvironment: Sendable {
    private var proxies: [String: String] = [:]
    private var exceptions: [String] = []

    /// - Parameter value: of a variable; `nil` where it is not set.
    package init(_ value: (String) -> String?) {
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if let value = value(name), !value.isEmpty { self.proxies[name] = value }
        }
        guard !self.proxies.isEmpty, let exceptions = value("no_proxy") ?? value("NO_PROXY") else { return }
        self.exceptions = exceptions.split { $0 == "," || $0 == " " }.map { $0.withLoweredLetters }
    }

    var isEmpty: Bool { self.proxies.isEmpty }

    /// The variable that names the proxy for a host; `nil` where there is none.
    /// - Parameter port: `nil` for that of the scheme.
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

    /// Whether `exception` is the host, a domain above it, or `*`; with a port, for that port alone.
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
