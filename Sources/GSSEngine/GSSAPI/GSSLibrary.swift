import CGSSAPI

/// The functions of the system's GSS-API, opened on first use.
@safe
struct GSSLibrary: @unchecked Sendable {  // Immutable; the library's functions may be called from any thread.
    private static let opened = Self.open(named: SecurityContext.standardLibrary)

    private static func open(named name: String) -> Result<Self, GSSFailure> {
        var functions = sluice_gss_functions()
        if let missing = unsafe sluice_gss_open(&functions, name) {
            return .failure(.libraryMissing(unsafe String(cString: missing)))
        }
        return .success(Self(gss: functions))
    }

    let gss: sluice_gss_functions

    /// - Parameter name: of the library's file.
    static func open(_ name: String = SecurityContext.standardLibrary) throws(GSSFailure) -> Self {
        try (name == SecurityContext.standardLibrary ? self.opened : self.open(named: name)).get()
    }

    // MARK: Names and credentials

    /// - Returns: a name to be released.
    func name(_ text: String, isUser: Bool) throws(GSSFailure) -> UnsafeMutableRawPointer? {
        var name: UnsafeMutableRawPointer?
        var minor: UInt32 = 0
        let major = unsafe Self.withBuffer(Array(text.utf8)) { buffer in
            var type = unsafe isUser ? sluice_gss_user_name : sluice_gss_service_name
            return unsafe self.gss.import_name(&minor, &buffer, &type, &name)
        }
        guard sluice_gss_error(major) == 0 else { throw self.failure(major, minor, nil) }
        return unsafe name
    }

    func releaseName(_ name: UnsafeMutableRawPointer?) {
        var (minor, name): (UInt32, UnsafeMutableRawPointer?) = unsafe (0, name)
        _ = unsafe self.gss.release_name(&minor, &name)
    }

    /// - Returns: a credential to be released.
    func credential(
        user: String, password: String, _ mechanism: SecurityMechanism
    ) throws(GSSFailure) -> UnsafeMutableRawPointer? {
        let name = unsafe try self.name(user, isUser: true)
        defer { unsafe self.releaseName(name) }
        var credential: UnsafeMutableRawPointer?
        var minor: UInt32 = 0
        let major = unsafe Self.withBuffer(Array(password.utf8)) { password in
            var oid = unsafe mechanism.oid
            return unsafe withUnsafeMutablePointer(to: &oid) { oid in
                var mechanisms = unsafe sluice_gss_oid_set(count: 1, elements: oid)
                return unsafe self.gss.acquire_cred_with_password(
                    &minor, name, &password, 0, &mechanisms, Int32(SLUICE_GSS_INITIATE), &credential, nil, nil)
            }
        }
        guard sluice_gss_error(major) == 0 else { throw self.failure(major, minor, mechanism) }
        return unsafe credential
    }

    func releaseCredential(_ credential: UnsafeMutableRawPointer?) {
        guard unsafe credential != nil else { return }
        var (minor, credential): (UInt32, UnsafeMutableRawPointer?) = unsafe (0, credential)
        _ = unsafe self.gss.release_cred(&minor, &credential)
    }

    func releaseContext(_ context: UnsafeMutableRawPointer?) {
        guard unsafe context != nil else { return }
        var (minor, context): (UInt32, UnsafeMutableRawPointer?) = unsafe (0, context)
        _ = unsafe self.gss.delete_sec_context(&minor, &context, nil)
    }

    // MARK: Buffers and failures

    /// Calls `body` with a buffer of the bytes, valid during the call.
    static func withBuffer<R>(_ bytes: [UInt8], _ body: (inout sluice_gss_buffer) -> R) -> R {
        // NTLM's plug-in (gss-ntlmssp 1.2.0) reads a password up to a zero, whatever the buffer's length says.
        var bytes = bytes + [0]
        return unsafe bytes.withUnsafeMutableBytes { bytes in
            var buffer = unsafe sluice_gss_buffer(length: bytes.count - 1, value: bytes.baseAddress)
            return unsafe body(&buffer)
        }
    }

    /// The bytes of a buffer that the library allocated, which is released.
    func take(_ buffer: inout sluice_gss_buffer) -> [UInt8] {
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: buffer.value, count: buffer.length))
        var minor: UInt32 = 0
        _ = unsafe self.gss.release_buffer(&minor, &buffer)
        return bytes
    }

    func failure(_ major: UInt32, _ minor: UInt32, _ mechanism: SecurityMechanism?) -> GSSFailure {
        let texts = [self.text(major, isMinor: false, nil), self.text(minor, isMinor: true, mechanism)]
        let text = texts.filter { !$0.isEmpty }.joined(separator: ": ")
        switch (sluice_gss_routine_error(major), mechanism) {
        case (UInt32(SLUICE_GSS_BAD_MECHANISM), .ntlm): return .ntlmMissing
        case (UInt32(SLUICE_GSS_NO_CREDENTIAL), _): return .noCredential(text)
        default: return .failed(text)
        }
    }

    /// The first line of the text of a status (RFC 2744 §5.11).
    private func text(_ status: UInt32, isMinor: Bool, _ mechanism: SecurityMechanism?) -> String {
        guard status != 0 else { return "" }
        var (minor, position): (UInt32, UInt32) = (0, 0)
        var text = unsafe sluice_gss_buffer(length: 0, value: nil)
        var oid = unsafe mechanism?.oid ?? sluice_gss_spnego
        let major = unsafe withUnsafePointer(to: &oid) { oid in
            unsafe self.gss.display_status(
                &minor, status, isMinor ? 2 : 1, mechanism == nil ? nil : oid, &position, &text)
        }
        guard sluice_gss_error(major) == 0 else { return isMinor ? "code \(status)" : "status \(status)" }
        return unsafe String(decoding: self.take(&text).filter { $0 >= 0x20 && $0 != 0x7F }, as: UTF8.self)
    }
}

extension SecurityMechanism {
    var oid: sluice_gss_oid {
        switch self {
        case .negotiate: unsafe sluice_gss_spnego
        case .ntlm: unsafe sluice_gss_ntlm
        }
    }
}
