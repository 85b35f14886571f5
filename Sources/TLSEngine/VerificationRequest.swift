/// Everything a caller needs to decide whether a peer is to be trusted.
public struct VerificationRequest: Sendable, Hashable {
    /// The certificates as the peer sent them, each as DER, its own first; never empty.
    public let peerChain: [[UInt8]]
    /// What verification by the configured trust, names, revocation lists and pins found. A pin that does not match is
    /// told as X509_V_ERR_APPLICATION_VERIFICATION.
    public let verdict: VerificationVerdict
    /// The name that we asked for (client) or were asked for (server).
    public let serverName: String?

    public init(peerChain: [[UInt8]], verdict: VerificationVerdict, serverName: String?) {
        self.peerChain = peerChain
        self.verdict = verdict
        self.serverName = serverName
    }
}
