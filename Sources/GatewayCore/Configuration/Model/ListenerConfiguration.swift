/// A bound address with its settings.
package struct ListenerConfiguration: Sendable, Equatable {
    /// Unique among listeners: letters, digits, `-`, `_`, `.`; 1 to 64 of them.
    package var name: String
    package var address: ListenAddress
    package var kind: ListenerKind
    /// TLS and plain connections share the port, told apart by their first byte. Only with the kinds `tls` and `wss`;
    /// a plain connection is then treated as `tcp` or `ws`.
    package var acceptsPlain = false
    /// Present exactly when `kind` speaks TLS.
    package var tls: ServerTLSSettings?
    /// The route that every connection takes. Present exactly for the kinds without requests: `tcp`, `tls`, `unix`.
    package var route: String?
    package var proxyProtocol = ProxyProtocolAcceptance()
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are believed and extended; from others they are replaced.
    package var trustedForwarders: [AddressBlock] = AddressBlock.loopback
    package var limits = ListenerLimits()
    package var keepAlive = KeepAliveSettings()
    /// Connections that may wait in the kernel to be accepted, 1 to 65 535; the kernel holds it to net.core.somaxconn.
    package var backlog = 4096

    package init(name: String, address: ListenAddress, kind: ListenerKind) {
        self.name = name
        self.address = address
        self.kind = kind
    }
}
