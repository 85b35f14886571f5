/// Why a cookie was not kept (RFC 6265bis §5.7).
package enum CookieRefusal: Error, Equatable, Sendable {
    /// Its name and value are empty, too long, or hold what would break the field that sends them back.
    case malformed
    /// It is meant for a domain that belongs to the public.
    case publicSuffix
    /// It is meant for a domain that the host which sent it is no part of.
    case foreignDomain
    /// It is secure, or would take the place of a secure one, and came in the clear.
    case insecureConnection
    /// A script meddled with what is for HTTP alone.
    case notForHTTP
    /// It came with an answer to another site's request and may not.
    case crossSite
    /// It is to go to all sites, and is not secure.
    case sameSiteNoneWithoutSecure
    /// Its name begins with `__Secure-` or `__Host-` and it is not what that promises.
    case brokenPrefix
}
