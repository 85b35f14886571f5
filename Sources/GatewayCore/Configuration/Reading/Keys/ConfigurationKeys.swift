/// Every key that a configuration may have, as the reference lists them.
package enum ConfigurationKeys {
    /// The full name of each: `listeners[].tls.certificate`, `max-connections`.
    package static var all: [String] {
        self.names(GatewayKey.self, in: "")
            + self.names(ControlKey.self, in: "control.")
            + self.names(ControlTokenKey.self, in: "control.tokens[].")
            + self.names(ControlClientKey.self, in: "control.clients[].")
            + self.names(ControlPeerKey.self, in: "control.peers[].")
            + self.names(TransferKey.self, in: "control.transfers.")
            + self.names(TransferCredentialKey.self, in: "control.transfers.credentials[].")
            + self.names(ListenerKey.self, in: "listeners[].")
            + self.names(ServerTLSKey.self, in: "listeners[].tls.")
            + self.names(CertificateKey.self, in: "listeners[].tls.certificates[].")
            + self.names(KeepAliveKey.self, in: "listeners[].keep-alive.")
            + self.names(RouteKey.self, in: "routes[].")
            + self.names(CompressionKey.self, in: "routes[].compress.")
            + self.names(BufferKey.self, in: "routes[].buffer.")
            + self.names(KeepAliveKey.self, in: "routes[].keep-alive.")
            + self.names(UpstreamKey.self, in: "upstreams[].")
            + self.names(EndpointKey.self, in: "upstreams[].endpoints[].")
            + self.names(ClientTLSKey.self, in: "upstreams[].tls.")
    }

    private static func names<Key: CaseIterable & RawRepresentable<String>>(
        _ keys: Key.Type, in section: String
    ) -> [String] {
        keys.allCases.map { section + $0.rawValue }
    }
}
