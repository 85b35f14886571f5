/// Why GSS-API provides no token.
package enum GSSFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The library is not installed, or lacks a function.
    case libraryMissing(String)
    /// The plug-in for NTLM is not installed.
    case ntlmMissing
    /// There are no credentials: no ticket, or the user name and password are refused.
    case noCredential(String)
    /// A token is invalid, the server is unknown to the realm, or the like.
    case failed(String)

    package var description: String {
        switch self {
        case .libraryMissing(let reason):
            "GSS-API is not available: install the package libgssapi-krb5-2 (\(reason))"
        case .ntlmMissing: "GSS-API has no NTLM: install the package gss-ntlmssp"
        case .noCredential(let reason): "GSS-API has no credentials: \(reason)"
        case .failed(let reason): "GSS-API: \(reason)"
        }
    }
}

/// How client and server authenticate each other.
package enum SecurityMechanism: Sendable, Hashable {
    /// SPNEGO (RFC 4178): Kerberos, or another mechanism that both sides have.
    case negotiate
    case ntlm
}
