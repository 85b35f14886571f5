/// What a test certificate is to say.
package struct TestCertificateProfile: Sendable {
    package var subjectName: String
    /// DNS names, wildcards included.
    package var names: [String]
    /// IP addresses in text.
    package var addresses: [String]
    /// Seconds from now.
    package var validFrom = -3600
    /// Seconds from now; negative makes it expired.
    package var validUntil = 86_400
    /// An extended key usage in OpenSSL's words.
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
