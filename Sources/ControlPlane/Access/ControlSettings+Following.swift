import GatewayCore

extension ControlSettings {
    /// What of other settings can be in force while the listener stays where it is: all but the place itself, and
    /// whether it speaks TLS.
    ///
    /// Callers whom the other place would need no longer are kept for this one: that the listener is to move must not
    /// let everybody in until it has.
    package func followed(by next: ControlSettings) -> ControlSettings {
        var settings = next
        settings.address = self.address
        settings.isExplicit = self.isExplicit
        if (self.tls == nil) != (next.tls == nil) { settings.tls = self.tls }
        guard next.address != self.address, !settings.authenticates, self.authenticates else { return settings }
        settings.tokens = self.tokens
        settings.clients = self.clients
        settings.peers = self.peers
        return settings
    }
}
