/// What a transfer proves itself with, named by whoever asks for it and never shown to him.
package struct TransferCredential: Sendable, Equatable {
    package enum Secret: Sendable, Equatable {
        /// Told where a server asks for it (Basic, Digest).
        case password(user: String, KeyPassword)
        /// Sent along with each request (RFC 6750).
        case token(KeyPassword)
    }

    /// Unique among credentials; the form of a listener's name.
    package var name: String
    /// Who may be given it: nobody else, whatever the transfer's URL or a redirect says.
    package var hosts: [HostPattern]
    package var secret: Secret

    package init(name: String, hosts: [HostPattern], secret: Secret) {
        self.name = name
        self.hosts = hosts
        self.secret = secret
    }

    /// - Parameter host: in any case, without port.
    package func isFor(_ host: String) -> Bool {
        self.hosts.contains { $0.matches(host) }
    }
}
