/// How much a jar holds. What is too much makes room by the order of RFC 6265bis §5.7.
package struct CookieLimits: Equatable, Sendable {
    /// Cookies of one domain; RFC 6265bis §6.1 asks for 50 at least.
    package var perDomain: Int
    /// Cookies in all; RFC 6265bis §6.1 asks for 3000 at least.
    package var total: Int
    /// Seconds that a cookie of a server may live; one that asks for more gets this (RFC 6265bis §5.5).
    package var lifetime: Int64

    /// - Parameters:
    ///   - perDomain: 180, as browsers have it; at least 1.
    ///   - total: 3300, as browsers have it; at least 1.
    ///   - lifetime: 400 days; at least 1 second.
    package init(perDomain: Int = 180, total: Int = 3300, lifetime: Int64 = 400 * 86_400) {
        self.perDomain = max(1, perDomain)
        self.total = max(1, total)
        self.lifetime = max(1, lifetime)
    }
}
