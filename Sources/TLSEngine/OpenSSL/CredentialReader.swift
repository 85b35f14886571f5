import COpenSSL

/// Reads certificates, keys and revocation lists from bytes or files. Never prompts for a password.
@safe
struct CredentialReader: ~Copyable {
    private let bio: OpaquePointer
    /// Path of the file, for failures; `nil` when reading from bytes.
    let file: String?

    init(file: String) throws(TLSFailure) {
        sluice_openssl_start()
        ErrorQueue.clear()
        guard let bio = unsafe BIO_new_file(file, "rb") else {
            throw ErrorQueue.failure(.unreadableCredentials, "cannot be opened", file: file)
        }
        unsafe self.bio = bio
        self.file = file
    }

    init(bytes: [UInt8]) throws(TLSFailure) {
        sluice_openssl_start()
        ErrorQueue.clear()
        // Copied, because a BIO over `bytes` would need them to stay in place for the lifetime of the reader.
        let bio = unsafe BIO_new(BIO_s_mem())
        let count = bytes.isEmpty ? 0 : unsafe BIO_write(bio, bytes, Int32(clamping: bytes.count))
        guard let bio = unsafe bio, count == bytes.count else {
            unsafe BIO_free(bio)
            throw ErrorQueue.failure(.unreadableCredentials, "cannot be copied into memory")
        }
        // Keeps the bytes when the BIO is reset.
        unsafe BIO_set_flags(bio, BIO_FLAGS_NONCLEAR_RST)
        unsafe self.bio = bio
        self.file = nil
    }

    deinit {
        unsafe BIO_free(self.bio)
    }

    func failure(_ kind: TLSFailure.Kind, _ what: String) -> TLSFailure {
        ErrorQueue.failure(kind, what, file: self.file)
    }

    /// Calls `use` with each certificate; the pointer is valid during the call.
    func eachCertificate(_ use: (OpaquePointer) -> Void) throws(TLSFailure) {
        unsafe try self.each(
            "certificate", pem: { unsafe PEM_read_bio_X509($0, nil, noPasswordCallback, nil) },
            der: { unsafe d2i_X509_bio($0, nil) }, free: { unsafe X509_free($0) }, use)
    }

    /// Calls `use` with each revocation list; the pointer is valid during the call.
    func eachRevocationList(_ use: (OpaquePointer) -> Void) throws(TLSFailure) {
        unsafe try self.each(
            "revocation list", pem: { unsafe PEM_read_bio_X509_CRL($0, nil, noPasswordCallback, nil) },
            der: { unsafe d2i_X509_CRL_bio($0, nil) }, free: { unsafe X509_CRL_free($0) }, use)
    }

    /// Reads PEM items up to the end of the text, or else a single DER item.
    private func each(
        _ kind: String, pem: (OpaquePointer) -> OpaquePointer?, der: (OpaquePointer) -> OpaquePointer?,
        free: (OpaquePointer) -> Void, _ use: (OpaquePointer) -> Void
    ) throws(TLSFailure) {
        var count = 0
        while let item = unsafe pem(self.bio) {
            unsafe use(item)
            unsafe free(item)
            count += 1
        }
        guard sluice_pem_ended() != 0 else { throw self.failure(.unreadableCredentials, "a \(kind) cannot be read") }
        ERR_clear_error()
        guard count == 0 else { return }
        try self.rewind()
        guard let item = unsafe der(self.bio) else { throw self.failure(.unreadableCredentials, "contains no \(kind)") }
        unsafe use(item)
        unsafe free(item)
    }

    /// Reads the private key, PEM or DER. The caller owns the result.
    func privateKey(password: String?) throws(TLSFailure) -> OpaquePointer {
        let attempt = PasswordAttempt(password)
        let context = unsafe Unmanaged.passUnretained(attempt).toOpaque()
        let key = unsafe PEM_read_bio_PrivateKey(self.bio, nil, passwordCallback, context)
        if let key = unsafe key { return unsafe key }
        if attempt.asked {
            // OpenSSL's own reasons are about a prompt that there is not.
            ErrorQueue.clear()
            let reason =
                password == nil
                ? "the key is encrypted, and there is no password for it" : "the key's password is wrong"
            throw TLSFailure(.wrongPassword, reasons: [reason], file: self.file)
        }
        let reasons = ErrorQueue.takeReasons()
        try self.rewind()
        if let key = unsafe d2i_PrivateKey_bio(self.bio, nil) { return unsafe key }
        ErrorQueue.clear()
        throw TLSFailure(.unreadableCredentials, reasons: ["contains no private key"] + reasons, file: self.file)
    }

    /// Parses a PKCS#12 container. The caller owns the result.
    func keyStore() throws(TLSFailure) -> OpaquePointer {
        guard let store = unsafe d2i_PKCS12_bio(self.bio, nil) else {
            throw self.failure(.unreadableCredentials, "is not PKCS#12")
        }
        return unsafe store
    }

    private func rewind() throws(TLSFailure) {
        ErrorQueue.clear()
        // On success a file BIO returns 0 and a memory BIO returns 1.
        guard unsafe BIO_ctrl(self.bio, BIO_CTRL_RESET, 0, nil) >= 0 else {
            throw self.failure(.unreadableCredentials, "cannot be read again")
        }
    }
}

/// The password for one encrypted key, and whether OpenSSL requested it.
private final class PasswordAttempt {
    let password: [UInt8]?
    var asked = false

    init(_ password: String?) {
        self.password = password.map { Array($0.utf8) }
    }
}

/// OpenSSL's `pem_password_cb`; without one OpenSSL would prompt on the terminal.
private func passwordCallback(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context, let buffer = unsafe buffer else { return -1 }
    let attempt = unsafe Unmanaged<PasswordAttempt>.fromOpaque(context).takeUnretainedValue()
    attempt.asked = true
    guard let password = attempt.password, password.count <= Int(size) else { return -1 }
    for (index, byte) in password.enumerated() { unsafe buffer[index] = CChar(bitPattern: byte) }
    return Int32(password.count)
}

private func noPasswordCallback(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}
