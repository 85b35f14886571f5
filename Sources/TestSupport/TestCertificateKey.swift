import COpenSSL

/// A fresh private key for tests.
package final class TestCertificateKey: @unchecked Sendable {
    package enum Kind: Sendable, Hashable, CaseIterable {
        /// P-256: quick to make, the kind to take when it does not matter.
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
