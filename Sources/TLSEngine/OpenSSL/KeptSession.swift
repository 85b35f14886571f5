import COpenSSL

/// One reference to a session that OpenSSL made. Sessions are shared by threads; OpenSSL changes none that was once
/// offered.
@safe
final class KeptSession: @unchecked Sendable {
    private let session: OpaquePointer

    /// Takes over the caller's reference.
    init(owning session: OpaquePointer) {
        unsafe self.session = session
    }

    deinit {
        unsafe SSL_SESSION_free(self.session)
    }

    /// TLS 1.2 sessions may be resumed any number of times.
    var isReusable: Bool { unsafe sluice_is_tls13(self.session) == 0 }

    /// Offers the session on a connection that has not started.
    func offer(on ssl: OpaquePointer?) {
        guard unsafe sluice_is_resumable(self.session) == 1 else { return }
        unsafe SSL_set_session(ssl, self.session)
    }
}
