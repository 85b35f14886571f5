/// What is asked of the peer's certificate.
public enum PeerVerification: Sendable, Hashable {
    /// A server asks clients for no certificate; a client takes whatever certificate the server shows. The latter gives
    /// secrecy towards nobody in particular: only pins or the caller's own decision make it safe.
    case none
    /// A server asks for a certificate and verifies one that is given; a client without is welcome. On a client the
    /// same as `required`, because a server always shows one.
    case optional
    /// Without a valid certificate there is no connection.
    case required
}
