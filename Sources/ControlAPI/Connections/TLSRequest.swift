/// How a connection is to be secured; the system's roots and the URL's host are verified unless it says otherwise.
package struct TLSRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// Asked for and verified in place of the URL's host.
    package var serverName: String?
    /// Takes any certificate. Only for tests.
    package var insecure: Bool?
    /// PEM: trusted in place of the system's roots.
    package var authorities: String?
    /// For ALPN, the most wanted first.
    package var applicationProtocols: [String]?
    /// `1.2` (default) or `1.3`.
    package var minimumVersion: String?
    /// For the handshake. Default: 10 s.
    package var timeoutMs: Double?

    package init(
        serverName: String? = nil, insecure: Bool? = nil, authorities: String? = nil,
        applicationProtocols: [String]? = nil, minimumVersion: String? = nil, timeoutMs: Double? = nil
    ) {
        self.serverName = serverName
        self.insecure = insecure
        self.authorities = authorities
        self.applicationProtocols = applicationProtocols
        self.minimumVersion = minimumVersion
        self.timeoutMs = timeoutMs
    }

    package static let members = [
        "serverName", "insecure", "authorities", "applicationProtocols", "minimumVersion", "timeoutMs",
    ]
}
