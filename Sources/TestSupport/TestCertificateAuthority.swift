import COpenSSL

/// Issues test certificates and revokes them.
package final class TestCertificateAuthority: Sendable {
    package let certificate: TestCertificate
    package var pem: String { self.certificate.certificatePEM }

    /// A root.
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

    /// A certificate for these host names.
    package func issue(
        _ names: String..., key: TestCertificateKey.Kind = .ec
    ) throws(TestCertificateFailure) -> TestCertificate {
        try self.issue(TestCertificateProfile(names.first ?? "nobody", names: names), key: key)
    }

    /// This authority's list of revoked certificates, valid for a day; PEM.
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
