import GatewayConfiguration
import GatewayCore
import WireText

/// Refuses requests that foreign web pages make browsers send: by DNS rebinding, or across origins.
package struct OriginPolicy: Sendable {
    private let hosts: [HostPattern]
    /// No browser reaches a Unix socket.
    private let isSocketFile: Bool

    package init(_ settings: ControlSettings) {
        self.hosts = settings.hosts
        self.isSocketFile = settings.address?.isSocketFile ?? false
    }

    /// - Parameters:
    ///   - authority: the `Host` field.
    ///   - fetchSite: the `Sec-Fetch-Site` field (W3C Fetch Metadata).
    /// - Throws: `ControlProblem` 400 without a host, 421 for an unknown host name, 403 for another origin.
    package func check(authority: String?, origin: String?, fetchSite: String?) throws(ControlProblem) {
        guard !self.isSocketFile else { return }
        guard let authority, let host = Self.host(of: authority) else {
            throw ControlProblem(400, "bad-host", "The request needs one Host field with a host (RFC 9112 §3.2).")
        }
        guard self.isKnown(host) else {
            throw ControlProblem(
                421, "unknown-host",
                "The host \(host.prefix(64)) is unknown; use an IP address or localhost, or add the name to control.hosts."
            )
        }
        if let origin {
            guard Self.isSameOrigin(origin, authority) else {
                throw ControlProblem(403, "cross-origin", "Cross-origin requests are refused.")
            }
        } else if let fetchSite, !["same-origin", "none"].contains(where: { $0.utf8.elementsEqual(fetchSite.utf8) }) {
            throw ControlProblem(403, "cross-origin", "Cross-site requests are refused (Sec-Fetch-Site).")
        }
    }

    private func isKnown(_ host: String) -> Bool {
        // An IP literal cannot be rebound by DNS.
        if host == "localhost" || Self.isAddress(host) { return true }
        return self.hosts.contains { $0.matches(host) }
    }

    private static func isAddress(_ host: String) -> Bool {
        (try? ValueSyntax<AddressBlock>.addressBlock.parse(host)) != nil && !host.contains("/")
    }

    /// The host in lower case, without brackets and port.
    private static func host(of authority: String) -> String? {
        guard authority.utf8.allSatisfy(\.isVisibleASCII) else { return nil }
        let text = authority.lowercased()
        let host: Substring
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
        } else {
            host = text.prefix { $0 != ":" }
        }
        return host.isEmpty || host.contains("/") || host.contains("@") ? nil : String(host)
    }

    /// Whether `origin` has the host and port of `authority`. Either scheme matches, as a proxy in front may terminate
    /// TLS.
    private static func isSameOrigin(_ origin: String, _ authority: String) -> Bool {
        guard origin.utf8.allSatisfy(\.isVisibleASCII) else { return false }
        let text = origin.lowercased()
        for (scheme, port) in [("http://", ":80"), ("https://", ":443")] where text.hasPrefix(scheme) {
            return Self.dropping(port, from: text.dropFirst(scheme.count))
                == Self.dropping(port, from: authority.lowercased()[...])
        }
        return false
    }

    private static func dropping(_ port: String, from authority: Substring) -> Substring {
        authority.hasSuffix(port) ? authority.dropLast(port.count) : authority
    }
}
