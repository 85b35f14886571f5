import URLLoading

/// Who asks, and whom we take for the control plane.
package struct ControlAccess: Sendable {
    /// A bearer token (RFC 6750); `nil`: none is sent.
    package var token: String?
    /// PEM: trusted in place of the system's roots.
    package var authorities: [UInt8]?
    /// To be shown to a control plane that asks for a certificate.
    package var identity: ClientIdentity?
    /// Any certificate is taken.
    package var isInsecure = false

    package init() {}

    /// Whether a token can be a header's value (RFC 6750 §2.1).
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 4096
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "-._~+/=".utf8.contains(byte)
                }
            }
    }
}
