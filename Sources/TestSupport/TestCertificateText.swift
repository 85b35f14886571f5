import COpenSSL

/// Collects what OpenSSL writes.
enum TestCertificateText {
    static func bytes(
        _ body: (OpaquePointer) -> Int32
    ) throws(TestCertificateFailure) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw TestCertificateFailure(description: "no memory") }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw TestCertificateFailure(description: "cannot be written") }
        var start: UnsafeMutablePointer<CChar>?
        let count = sluice_bio_contents(bio, &start)
        return Array(UnsafeRawBufferPointer(start: start, count: max(0, count)))
    }

    static func write(_ body: (OpaquePointer) -> Int32) throws(TestCertificateFailure) -> String {
        String(decoding: try self.bytes(body), as: UTF8.self)
    }
}
