import COpenSSL

/// A certificate made for a test, with its key and the chain above it.
package final class TestCertificate: @unchecked Sendable {
    package let key: TestCertificateKey
    /// The certificate, then every issuer below the root; PEM.
    package let chainPEM: String
    /// Only the certificate; PEM.
    package let certificatePEM: String
    package let der: [UInt8]
    let handle: OpaquePointer
    private let issuers: [TestCertificate]

    /// Makes a certificate and signs it.
    /// - Parameter issuer: who signs; `nil` makes it self-signed.
    package init(
        _ profile: TestCertificateProfile, key: TestCertificateKey? = nil, issuer: TestCertificate? = nil
    ) throws(TestCertificateFailure) {
        let key = if let key { key } else { try TestCertificateKey() }
        guard let handle = X509_new() else { throw TestCertificateFailure(description: "no memory") }
        self.key = key
        self.handle = handle
        self.issuers = issuer.map { $0.issuers.isEmpty && $0.isSelfSigned ? [] : [$0] + $0.issuers } ?? []
        do throws(TestCertificateFailure) {
            try Self.fill(handle, profile, key: key.handle, issuer: issuer?.handle ?? handle)
            guard X509_sign(handle, (issuer?.key ?? key).handle, EVP_sha256()) > 0 else {
                throw TestCertificateFailure(description: "cannot be signed")
            }
            self.certificatePEM = try TestCertificateText.write { PEM_write_bio_X509($0, handle) }
            self.der = try TestCertificateText.bytes { i2d_X509_bio($0, handle) }
        } catch {
            X509_free(handle)
            throw error
        }
        self.chainPEM = self.certificatePEM + self.issuers.map(\.certificatePEM).joined()
    }

    deinit {
        X509_free(self.handle)
    }

    package func keyPEM(password: String? = nil) throws(TestCertificateFailure) -> String {
        try self.key.pem(password: password)
    }

    /// A PKCS#12 container with certificate, chain and key.
    package func pkcs12(password: String) throws(TestCertificateFailure) -> [UInt8] {
        guard let chain = sluice_x509_stack() else { throw TestCertificateFailure(description: "no memory") }
        defer { sluice_x509_stack_free(chain) }
        for issuer in self.issuers where X509_up_ref(issuer.handle) == 1 {
            _ = sluice_x509_push(chain, issuer.handle)
        }
        guard let store = PKCS12_create(password, "test", self.key.handle, self.handle, chain, 0, 0, 0, 0, 0) else {
            throw TestCertificateFailure(description: "no PKCS#12")
        }
        defer { PKCS12_free(store) }
        return try TestCertificateText.bytes { i2d_PKCS12_bio($0, store) }
    }

    private var isSelfSigned: Bool { X509_self_signed(self.handle, 0) == 1 }

    private static func fill(
        _ handle: OpaquePointer, _ profile: TestCertificateProfile, key: OpaquePointer, issuer: OpaquePointer
    ) throws(TestCertificateFailure) {
        X509_set_version(handle, 2)
        var serial = [UInt8](repeating: 0, count: 15)
        RAND_bytes(&serial, 15)
        serial[0] = serial[0] & 0x7F | 1
        let number = BN_bin2bn(serial, 15, nil)
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(handle))
        BN_free(number)
        X509_gmtime_adj(X509_getm_notBefore(handle), profile.validFrom)
        X509_gmtime_adj(X509_getm_notAfter(handle), profile.validUntil)
        let name = X509_get_subject_name(handle)
        X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_FLAG | 1, profile.subjectName, -1, -1, 0)
        X509_set_issuer_name(handle, X509_get_subject_name(issuer))
        X509_set_pubkey(handle, key)
        try Self.addExtensions(handle, profile, issuer: issuer)
    }

    private static func addExtensions(
        _ handle: OpaquePointer, _ profile: TestCertificateProfile, issuer: OpaquePointer
    ) throws(TestCertificateFailure) {
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, profile.isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE"),
            (
                NID_key_usage,
                profile.isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature,keyEncipherment"
            ),
            (NID_subject_key_identifier, "hash"),
        ]
        if handle != issuer { extensions.append((NID_authority_key_identifier, "keyid")) }
        if !profile.isAuthority { extensions.append((NID_ext_key_usage, profile.usage)) }
        let names = profile.names.map { "DNS:\($0)" } + profile.addresses.map { "IP:\($0)" }
        if !names.isEmpty { extensions.append((NID_subject_alt_name, names.joined(separator: ","))) }
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer, handle, nil, nil, 0)
        for (identifier, value) in extensions {
            guard let made = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
                throw TestCertificateFailure(description: "no extension \(value)")
            }
            X509_add_ext(handle, made, -1)
            X509_EXTENSION_free(made)
        }
    }
}
