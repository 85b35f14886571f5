extension DeflatePolicy {
    /// A server's choice among what the client offers: the first offer that it can accept wins.
    ///
    /// - Parameter offered: all extensions of the request; other extensions are passed over, and so are offers that
    ///   are not well-formed (RFC 7692 §7.1).
    /// - Returns: `nil` to go without compression.
    public func choose(among offered: [NamedExtension]) -> PermessageDeflateParameters? {
        for named in offered {
            if let offer = PermessageDeflateOffer(named), let accepted = self.accept(offer) { return accepted }
        }
        return nil
    }

    /// A server's answer to one offer.
    ///
    /// A `server_max_window_bits` of 8 is granted: our deflater never reaches back further than 250 bytes then (RFC
    /// 7692 §7.1.2.1).
    /// - Returns: `nil` only for an offer that lets us not limit the client's window, when we insist on that.
    public func accept(_ offer: PermessageDeflateOffer) -> PermessageDeflateParameters? {
        var accepted = PermessageDeflateParameters(
            serverNoContextTakeover: offer.serverNoContextTakeover || !self.keepsOwnContext,
            clientNoContextTakeover: offer.clientNoContextTakeover || !self.letsPeerKeepContext)
        if let largest = offer.serverMaxWindowBits {
            accepted.serverMaxWindowBits = min(largest, self.ownWindowBits)
        } else if self.ownWindowBits < 15 {
            accepted.serverMaxWindowBits = self.ownWindowBits
        }
        switch offer.clientWindow {
        case .notLimitable:
            if self.insistsOnPeerWindow, self.peerWindowBits < 15 { return nil }
        case .limitable:
            accepted.clientMaxWindowBits = self.peerWindowBits < 15 ? self.peerWindowBits : nil
        case .limited(let largest):
            accepted.clientMaxWindowBits = min(largest, self.peerWindowBits)
        }
        return accepted
    }
}
