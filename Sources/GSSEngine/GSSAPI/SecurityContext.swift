import CGSSAPI

/// Credential that proves a client's identity.
package enum SecurityCredential: Sendable, Hashable {
    /// The tickets of the user whom the process runs as, or what else the mechanism takes by itself.
    case system
    /// - Parameter user: for Kerberos `user` or `user@REALM`; for NTLM also `DOMAIN\user`.
    case password(user: String, password: String)
}

/// Result of a step of a security context.
package struct SecurityStep: Sendable, Equatable {
    /// For the other side; empty for none.
    package let token: [UInt8]
    /// Whether this side takes no further token.
    package let isComplete: Bool
}

/// The client's side of a security context (RFC 2743 §1.2): exchanges tokens until both sides are sure of each other.
///
/// All calls may block, up to minutes where a key distribution centre does not answer. Not safe for use by several threads
/// at a time.
@safe
package final class SecurityContext: @unchecked Sendable {  // Used by one thread at a time.
    /// Longest token of the server in bytes. A token in a header field is shorter.
    package static let tokenLimit = 1 << 20
    package static let standardLibrary = "libgssapi_krb5.so.2"

    private let library: GSSLibrary
    private let mechanism: SecurityMechanism
    private let bindings: [UInt8]
    private var context: UnsafeMutableRawPointer?
    private let target: UnsafeMutableRawPointer?
    private var credential: UnsafeMutableRawPointer?

    /// - Parameters:
    ///   - service: of the server, such as `HTTP`.
    ///   - host: the server's name, as it is registered in the realm.
    ///   - bindings: the channel bindings' application data (RFC 5056), such as `tls-server-end-point`; empty for none.
    ///   - library: file name of GSS-API's library.
    package init(
        _ mechanism: SecurityMechanism, with credential: SecurityCredential, to service: String, at host: String,
        bindings: [UInt8] = [], library: String = SecurityContext.standardLibrary
    ) throws(GSSFailure) {
        let library = try GSSLibrary.open(library)
        self.library = library
        self.mechanism = mechanism
        self.bindings = bindings
        let target = unsafe try library.name("\(service)@\(host)", isUser: false)
        unsafe self.target = target
        unsafe self.credential = nil
        guard case .password(let user, let password) = credential else { return }
        unsafe self.credential = try library.credential(user: user, password: password, mechanism)
    }

    deinit {
        unsafe self.library.releaseContext(self.context)
        unsafe self.library.releaseName(self.target)
        unsafe self.library.releaseCredential(self.credential)
    }

    /// Takes the server's token, and gives the next one for it.
    /// - Parameter token: empty for the first step.
    package func step(_ token: [UInt8]) throws(GSSFailure) -> SecurityStep {
        guard token.count <= Self.tokenLimit else { throw .failed("the server's token is too long") }
        var minor: UInt32 = 0
        var output = unsafe sluice_gss_buffer(length: 0, value: nil)
        let major = unsafe GSSLibrary.withBuffer(token) { input in
            unsafe GSSLibrary.withBuffer(self.bindings) { application in
                var bindings = unsafe sluice_gss_bindings()
                unsafe bindings.application = application
                var oid = unsafe self.mechanism.oid
                return unsafe withUnsafeMutablePointer(to: &bindings) { bindings in
                    unsafe self.library.gss.init_sec_context(
                        &minor, self.credential, &self.context, self.target, &oid, 0, 0,
                        self.bindings.isEmpty ? nil : bindings, &input, nil, &output, nil, nil)
                }
            }
        }
        let answer = unsafe self.library.take(&output)
        guard sluice_gss_error(major) == 0 else { throw self.library.failure(major, minor, self.mechanism) }
        return SecurityStep(token: answer, isComplete: major & UInt32(SLUICE_GSS_CONTINUE) == 0)
    }
}

/// The server's side of a security context.
@safe
package final class AcceptingContext: @unchecked Sendable {  // Used by one thread at a time.
    private let library: GSSLibrary
    private var context: UnsafeMutableRawPointer?
    /// The client's name; `nil` until the context is complete.
    package private(set) var client: String?

    /// Takes the system's credentials of a server: for Kerberos the key table, for NTLM the list of users that the
    /// environment variable `NTLM_USER_FILE` names.
    package init() throws(GSSFailure) {
        self.library = try GSSLibrary.open()
    }

    deinit {
        unsafe self.library.releaseContext(self.context)
    }

    package func step(_ token: [UInt8]) throws(GSSFailure) -> SecurityStep {
        var minor: UInt32 = 0
        var output = unsafe sluice_gss_buffer(length: 0, value: nil)
        var name: UnsafeMutableRawPointer?
        let major = unsafe GSSLibrary.withBuffer(token) { input in
            unsafe self.library.gss.accept_sec_context(
                &minor, &self.context, nil, &input, nil, &name, nil, &output, nil, nil, nil)
        }
        defer { if unsafe name != nil { unsafe self.library.releaseName(name) } }
        let answer = unsafe self.library.take(&output)
        guard sluice_gss_error(major) == 0 else { throw self.library.failure(major, minor, nil) }
        let isComplete = major & UInt32(SLUICE_GSS_CONTINUE) == 0
        if isComplete { unsafe self.client = self.text(of: name) }
        return SecurityStep(token: answer, isComplete: isComplete)
    }

    private func text(of name: UnsafeMutableRawPointer?) -> String? {
        guard unsafe name != nil else { return nil }
        var minor: UInt32 = 0
        var text = unsafe sluice_gss_buffer(length: 0, value: nil)
        let major = unsafe self.library.gss.display_name(&minor, name, &text, nil)
        guard sluice_gss_error(major) == 0 else { return nil }
        // The name of NTLM's mechanism ends with a zero.
        return unsafe String(decoding: self.library.take(&text).prefix { $0 != 0 }, as: UTF8.self)
    }
}
