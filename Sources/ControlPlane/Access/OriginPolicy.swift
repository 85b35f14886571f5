import GatewayCore

/// Refuses what a web page of somebody else makes a browser send: through a name that leads here (DNS rebinding), or
/// across origins.
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
    ///   - fetchSite: `Sec-Fetch-Site`, with which browsers say whose page asks (W3C Fetch Metadata).
    /// - Throws: `ControlProblem` 400 without a host, 421 for a name that is not ours, 403 for another origin.
    package func check(authority: String?, origin: String?, fetchSite: String?) throws(ControlProblem) {
        guard !self.isSocketFile else { return }
        guard let authority, let host = Self.host(of: authority) else {
            throw ControlProblem(400, "bad-host", "The request needs one Host field with a host (RFC 9112 §3.2).")
        }
        guard self.isOurs(host) else {
            throw ControlProblem(
                421, "unknown-host",
                "This is not \(host.prefix(64)); ask by address or as localhost, or add the name to control.hosts.")
        }
        if let origin {
            guard Self.isSame(origin, authority) else {
                throw ControlProblem(
                    403, "cross-origin", "Requests by pages of other origins than the control plane's own are refused.")
            }
        } else if let fetchSite, fetchSite != "same-origin", fetchSite != "none" {
            throw ControlProblem(
                403, "cross-origin", "Requests by pages of other sites are refused (Sec-Fetch-Site).")
        }
    }

    private func isOurs(_ host: String) -> Bool {
        // An address in digits is no name that could lead to another address tomorrow.
        if host == "localhost" || Self.isAddress(host) { return true }
        return self.hosts.contains { $0.matches(host) }
    }

    private static func isAddress(_ host: String) -> Bool {
        (try? ValueSyntax<AddressBlock>.addressBlock.parse(host)) != nil && !host.contains("/")
    }

    /// In lower case, without brackets and port.
    private static func host(of authority: String) -> String? {
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

    /// Whether a page of `origin` is one of ours: the same host and port, whichever of the two schemes a proxy before
    /// us may speak.
    private static func isSame(_ origin: String, _ authority: String) -> Bool {
        let text = origin.lowercased()
        for (scheme, port) in [("http://", ":80"), ("https://", ":443")] where text.hasPrefix(scheme) {
            return Self.without(port, text.dropFirst(scheme.count)) == Self.without(port, authority.lowercased()[...])
        }
        return false
    }

    private static func without(_ port: String, _ authority: Substring) -> Substring {
        authority.hasSuffix(port) ? authority.dropLast(port.count) : authority
    }
}
