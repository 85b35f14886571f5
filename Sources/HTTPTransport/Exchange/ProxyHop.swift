/// A proxy between us and the server. Part of what makes two connections interchangeable; not spoken to yet.
package enum ProxyHop: Sendable, Hashable {
    /// HTTP: absolute targets for `http`, CONNECT for `https` (RFC 9110 §9.3.6).
    case http(host: String, port: UInt16)
    /// SOCKS 5 (RFC 1928).
    case socks(host: String, port: UInt16)
}
