import COpenSSL

/// A generated certificate with its key and chain.
package final class TestCertificate: @unchecked Sendable {  // The certificate is not changed once it is signed.
    package let key: TestCertificateKey
    /// The certificate and its intermediate issuers, PEM.
    package let chainPEM: String
    package let certificatePEM: String
    package let der: [UInt8]
    let handle: OpaquePointer
    private let issuers: [TestCertificate]

    /// Creates and signs a certificate.
    /// - Parameter issuer: `nil` for a self-signed certificate.
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

package struct TestCertificateProfile: Sendable {
    package var subjectName: String
    /// DNS names, wildcards included.
    package var names: [String]
    package var addresses: [String]
    /// Seconds from now.
    package var validFrom = -3600
    /// Seconds from now; negative makes it expired.
    package var validUntil = 86_400
    /// Extended key usage in OpenSSL's syntax.
    package var usage = "serverAuth,clientAuth"
    package var isAuthority = false

    package init(_ subjectName: String, names: [String] = [], addresses: [String] = []) {
        self.subjectName = subjectName
        self.names = names
        self.addresses = addresses
    }

    package static func expired(_ name: String) -> TestCertificateProfile {
        var profile = TestCertificateProfile(name, names: [name])
        profile.validFrom = -7200
        profile.validUntil = -3600
        return profile
    }

    package static func authority(_ name: String) -> TestCertificateProfile {
        var profile = TestCertificateProfile(name)
        profile.isAuthority = true
        return profile
    }
}

/// Issues test certificates and revokes them.
package final class TestCertificateAuthority: Sendable {
    package let certificate: TestCertificate
    package var pem: String { self.certificate.certificatePEM }

    package init(_ name: String = "Test Root", key: TestCertificateKey.Kind = .ec) throws(TestCertificateFailure) {
        self.certificate = try TestCertificate(.authority(name), key: TestCertificateKey(key))
    }

    private init(_ certificate: TestCertificate) {
        self.certificate = certificate
    }

    package func intermediate(_ name: String = "Test Intermediate") throws(TestCertificateFailure)
        -> TestCertificateAuthority
    {
        TestCertificateAuthority(try TestCertificate(.authority(name), issuer: self.certificate))
    }

    package func issue(
        _ profile: TestCertificateProfile, key: TestCertificateKey.Kind = .ec
    ) throws(TestCertificateFailure) -> TestCertificate {
        try TestCertificate(profile, key: TestCertificateKey(key), issuer: self.certificate)
    }

    /// Issues a certificate for these host names.
    package func issue(
        _ names: String..., key: TestCertificateKey.Kind = .ec
    ) throws(TestCertificateFailure) -> TestCertificate {
        try self.issue(TestCertificateProfile(names.first ?? "nobody", names: names), key: key)
    }

    /// A revocation list of this authority, valid for a day, PEM.
    package func revocationList(_ revoked: [TestCertificate]) throws(TestCertificateFailure) -> String {
        guard let list = X509_CRL_new(), let now = X509_gmtime_adj(nil, -3600), let next = X509_gmtime_adj(nil, 86_400)
        else { throw TestCertificateFailure(description: "no memory") }
        defer {
            X509_CRL_free(list)
            ASN1_TIME_free(now)
            ASN1_TIME_free(next)
        }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(self.certificate.handle))
        X509_CRL_set1_lastUpdate(list, now)
        X509_CRL_set1_nextUpdate(list, next)
        for certificate in revoked {
            guard let entry = X509_REVOKED_new() else { continue }
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.handle))
            X509_REVOKED_set_revocationDate(entry, now)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_CRL_sort(list)
        guard X509_CRL_sign(list, self.certificate.key.handle, EVP_sha256()) > 0 else {
            throw TestCertificateFailure(description: "the list cannot be signed")
        }
        return try TestCertificateText.write { PEM_write_bio_X509_CRL($0, list) }
    }
}

/// A fresh private key for tests.
package final class TestCertificateKey: @unchecked Sendable {  // The key is not changed once it is generated.
    package enum Kind: Sendable, Hashable, CaseIterable {
        /// P-256, fast to generate.
        case ec
        /// 2048 bits.
        case rsa
    }

    package let kind: Kind
    let handle: OpaquePointer

    package init(_ kind: Kind = .ec) throws(TestCertificateFailure) {
        let made =
            switch kind {
            case .ec: sluice_generate_ec("P-256")
            case .rsa: sluice_generate_rsa(2048)
            }
        guard let made else { throw TestCertificateFailure(description: "no \(kind) key") }
        self.kind = kind
        self.handle = made
    }

    deinit {
        EVP_PKEY_free(self.handle)
    }

    /// PKCS#8 PEM, encrypted with AES-256 if there is a password.
    package func pem(password: String? = nil) throws(TestCertificateFailure) -> String {
        try TestCertificateText.write { bio in
            let cipher = password == nil ? nil : EVP_aes_256_cbc()
            return PEM_write_bio_PKCS8PrivateKey(
                bio, self.handle, cipher, password, Int32(password?.utf8.count ?? 0), nil, nil)
        }
    }
}

/// Collects the output of OpenSSL's write functions.
private enum TestCertificateText {
    static func bytes(_ body: (OpaquePointer) -> Int32) throws(TestCertificateFailure) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw TestCertificateFailure(description: "no memory") }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw TestCertificateFailure(description: "cannot be written") }
        var bytes = [UInt8](repeating: 0, count: Int(clamping: BIO_ctrl_pending(bio)))
        let count = BIO_read(bio, &bytes, Int32(clamping: bytes.count))
        guard count == bytes.count else { throw TestCertificateFailure(description: "cannot be read back") }
        return bytes
    }

    static func write(_ body: (OpaquePointer) -> Int32) throws(TestCertificateFailure) -> String {
        String(decoding: try self.bytes(body), as: UTF8.self)
    }
}

package struct TestCertificateFailure: Error, CustomStringConvertible {
    package let description: String
}
