extension DeflatePolicy {
    /// What a client of this policy offers, the most wanted first.
    ///
    /// Where a limit of the peer's window is a wish only, a second offer goes without it, for servers that cannot
    /// limit theirs.
    public var offers: [PermessageDeflateOffer] {
        let wanted = PermessageDeflateOffer(
            serverNoContextTakeover: !self.letsPeerKeepContext, clientNoContextTakeover: !self.keepsOwnContext,
            serverMaxWindowBits: self.peerWindowBits < 15 ? self.peerWindowBits : nil,
            clientWindow: self.ownWindowBits < 15 ? .limited(self.ownWindowBits) : .limitable)
        guard wanted.serverMaxWindowBits != nil, !self.insistsOnPeerWindow else { return [wanted] }
        var fallback = wanted
        fallback.serverMaxWindowBits = nil
        return [wanted, fallback]
    }
}
