/// OpenSSL refused to make a certificate for a test.
package struct TestCertificateFailure: Error, CustomStringConvertible {
    package let description: String
}
