/// The rules about the hosts that a cookie belongs to (RFC 6265bis §5.1.2, §5.1.3).
package enum CookieDomain {
    /// Lower case, without a leading dot and without the dot at the end that names the root.
    ///
    /// Names beyond ASCII are to be given in their `xn--` form, which is how URLs hold them.
    package static func canonical(_ domain: String) -> String {
        var lowered = domain.loweredASCII
        if lowered.hasPrefix(".") { lowered.removeFirst() }
        if lowered.hasSuffix("."), !self.isAddress(lowered) { lowered.removeLast() }
        if lowered.hasPrefix("["), lowered.hasSuffix("]") { lowered = String(lowered.dropFirst().dropLast()) }
        return lowered
    }

    /// Whether `host` is `domain` or lies below it. Both in canonical form; nothing lies below an address.
    package static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        guard !domain.isEmpty, host.utf8.count > domain.utf8.count,
            host.utf8.suffix(domain.utf8.count).elementsEqual(domain.utf8)
        else { return false }
        let boundary = host.utf8.dropLast(domain.utf8.count).last
        return boundary == UInt8(ascii: ".") && !self.isAddress(host)
    }

    /// Whether `host` is an IPv4 or an IPv6 address and no name.
    package static func isAddress(_ host: String) -> Bool {
        var parts = 1
        var digits = 0
        for byte in host.utf8 {
            switch byte {
            case UInt8(ascii: ":"):
                // Only an address has a colon.
                return true
            case UInt8(ascii: ".") where digits > 0:
                parts += 1
                digits = 0
            case UInt8(ascii: "0")...UInt8(ascii: "9") where digits < 3: digits += 1
            // Of a name with a colon in it there is none to be asked for.
            default: return host.utf8.contains(UInt8(ascii: ":"))
            }
        }
        return parts == 4 && digits > 0
    }

    /// The domain that a site is known by: one label more than its public suffix. A host without one is its own site.
    package static func site(of host: String, suffixes: PublicSuffixRule) -> String {
        let host = self.canonical(host)
        if self.isAddress(host) || suffixes.isPublicSuffix(host) { return host }
        var site = host.utf8[...]
        while let dot = site.firstIndex(of: UInt8(ascii: ".")) {
            let parent = site[site.index(after: dot)...]
            if suffixes.isPublicSuffix(String(Substring(parent))) { return String(Substring(site)) }
            site = parent
        }
        return host
    }

    /// Whether two hosts are of one site: what "only from the main document's domain" asks.
    package static func areSameSite(_ one: String, _ other: String, suffixes: PublicSuffixRule) -> Bool {
        self.site(of: one, suffixes: suffixes) == self.site(of: other, suffixes: suffixes)
    }
}
