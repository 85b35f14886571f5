/// What a client's first message says to whoever routes it before TLS begins (RFC 8446 §4.1.2).
public struct ClientHello: Sendable, Hashable {
    /// The host name wanted (RFC 6066 §3); `nil` if none is named.
    public let serverName: String?
    /// The protocols offered by ALPN (RFC 7301 §3.1), the client's order; bytes that are not UTF-8 are replaced.
    public let applicationProtocols: [String]

    public init(serverName: String?, applicationProtocols: [String]) {
        self.serverName = serverName
        self.applicationProtocols = applicationProtocols
    }
}
