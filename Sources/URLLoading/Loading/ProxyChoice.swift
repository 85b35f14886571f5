import Foundation

/// Whether a configuration sends a request through a proxy, which is still to come: the load says so then.
enum ProxyChoice {
    /// By the keys of `connectionProxyDictionary`: what turns a proxy on, for which schemes.
    private static let switches = [
        "HTTPEnable": ["http", "ws"], "HTTPSEnable": ["https", "wss"],
        "SOCKSEnable": ["http", "https", "ws", "wss"], "ProxyAutoConfigEnable": ["http", "https", "ws", "wss"],
    ]

    static func isWanted(for url: URL?, _ configuration: URLSessionConfiguration) -> Bool {
        guard let settings = configuration.connectionProxyDictionary, let scheme = url?.scheme?.withLoweredLetters
        else { return false }
        return self.switches.contains { key, schemes in
            let value = settings[key] as Any
            let isOn = (value as? Bool) ?? (value as? Int).map { $0 != 0 } ?? (value as? NSNumber)?.boolValue ?? false
            return isOn && schemes.contains(scheme)
        }
    }
}
