/// The rules about the hosts that a cookie belongs to (RFC 6265bis §5.1.2, §5.1.3).
package enum CookieDomain {
    /// Lower case, without a leading dot and without the dot at the end that names the root.
    ///
    /// Names beyond ASCII are to be given in their `xn--` form, which is how URLs hold them.
    package static func canonical(_ domain: some StringProtocol) -> String {
        var lowered = domain.loweredASCII
        if lowered.hasPrefix(".") { lowered.removeFirst() }
        if lowered.hasSuffix("."), !self.isAddress(lowered) { lowered.removeLast() }
        if lowered.hasPrefix("["), lowered.hasSuffix("]") { lowered = String(lowered.dropFirst().dropLast()) }
        return lowered
    }

    /// Whether `host` is `domain` or lies below it. Both in canonical form; nothing lies below an address.
    package static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        guard !domain.isEmpty, host.utf8.count > domain.utf8.count, host.hasSuffix(domain) else { return false }
        let boundary = host.utf8.dropLast(domain.utf8.count).last
        return boundary == UInt8(ascii: ".") && !self.isAddress(host)
    }

    /// Whether `host` is an IPv4 or an IPv6 address and no name.
    package static func isAddress(_ host: some StringProtocol) -> Bool {
        // Only an address has a colon, and no name ends in a label of digits alone (WHATWG URL §3.5).
        if host.utf8.contains(UInt8(ascii: ":")) { return true }
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { !$0.isEmpty && $0.count <= 3 && $0.allSatisfy(\.isDigit) }
    }

    /// The domain that a site is known by: one label more than its public suffix. A host without one is its own site.
    package static func site(of host: String, suffixes: PublicSuffixRule) -> String {
        let host = self.canonical(host)
        if self.isAddress(host) || suffixes.isPublicSuffix(host) { return host }
        var site = host[...]
        while let dot = site.firstIndex(of: ".") {
            let parent = site[site.index(after: dot)...]
            if suffixes.isPublicSuffix(String(parent)) { return String(site) }
            site = parent
        }
        return host
    }

    /// Whether two hosts are of one site: what "only from the main document's domain" asks.
    package static func areSameSite(_ one: String, _ other: String, suffixes: PublicSuffixRule) -> Bool {
        self.site(of: one, suffixes: suffixes) == self.site(of: other, suffixes: suffixes)
    }
}
