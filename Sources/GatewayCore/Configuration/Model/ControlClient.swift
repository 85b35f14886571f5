/// Whose certificates the control plane knows, and what they may do.
package struct ControlClient: Sendable, Equatable {
    /// What a certificate must show.
    package enum Mark: Sendable, Equatable {
        /// Its whole subject in the form of RFC 2253: `CN=ops,O=Example`.
        case subject(String)
        /// One of its alternative names: a DNS name, an e-mail address or a URI, compared as it stands.
        case alternativeName(String)
        case pin(PublicKeyPin)
    }

    /// Stands in the audit log.
    package var name: String
    package var mark: Mark
    package var scopes: Set<ControlScope>

    package init(name: String, mark: Mark, scopes: Set<ControlScope>) {
        self.name = name
        self.mark = mark
        self.scopes = scopes
    }
}
