import GatewayConfiguration
import WireText

/// Which pages may open WebSockets here (RFC 6455 §10.2).
///
/// Only browsers send `Origin`, and they always do: a client without one is no page and passes. Any other client can
/// write what it likes, so this protects people with browsers, and is no authentication.
package struct OriginRules: Hashable, Sendable {
    private let patterns: [OriginPattern]
    private let allowsAny: Bool
    private let allowsOpaque: Bool

    /// - Parameter patterns: pages that pass; without any, none does.
    package init(_ patterns: [OriginPattern]) {
        self.patterns = patterns
        self.allowsAny = patterns.contains(.any)
        self.allowsOpaque = patterns.contains(.opaque)
    }

    /// A route's rules: no list lets every page pass.
    package init(of route: RouteConfiguration) {
        self.init(route.origins.isEmpty ? [.any] : route.origins)
    }

    /// - Parameter origin: value of the `Origin` field; `nil` without one.
    /// - Returns: whether the request is allowed; otherwise the response is 403. A value that is no origin by RFC 6454
    ///   §6.1 is allowed only if all are.
    package func allows(_ origin: String?) -> Bool {
        guard !self.allowsAny, let origin else { return true }
        if origin.utf8.elementsEqual("null".utf8) { return self.allowsOpaque }
        guard let parsed = Self.parse(origin) else { return false }
        return self.patterns.contains { pattern in
            guard case .site(parsed.scheme, let host, parsed.port) = pattern else { return false }
            return host.matches(parsed.host)
        }
    }

    /// Scheme and port as `OriginPattern` keeps them: lower case, and no port where it is the scheme's own.
    private static func parse(_ origin: String) -> (scheme: String, host: String, port: UInt16?)? {
        guard origin.utf8.allSatisfy(\.isVisibleASCII), let colon = origin.firstIndex(of: ":") else { return nil }
        let scheme = origin[..<colon].lowercased()
        let rest = origin[origin.index(after: colon)...]
        guard !scheme.isEmpty, rest.hasPrefix("//"),
            let parts = HostText.split(rest.dropFirst(2)), !parts.host.isEmpty, !parts.host.contains("/")
        else { return nil }
        var port: UInt16?
        if let text = parts.port {
            guard let number = Decimal.port(text.utf8) else { return nil }
            port = number
        }
        let host = parts.host.lowercased()
        guard case .site(_, _, let normal) = OriginPattern(scheme: scheme, host: .exact(host), port: port) else {
            return nil
        }
        return (scheme, host, normal)
    }
}
