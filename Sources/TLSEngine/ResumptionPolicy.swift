/// How sessions are resumed without a full handshake.
public enum ResumptionPolicy: Sendable, Hashable {
    case off
    /// Server: tickets that the client keeps (RFC 5077, RFC 8446 §4.6.1), nothing kept here. Client: tickets and
    /// sessions are kept, as many as `TLSConfiguration.clientSessionLimit` allows.
    case tickets
    /// Server: sessions are kept here, at most `limit`; the oldest makes room. Client: the same as `tickets`.
    case serverCache(limit: Int)
}
