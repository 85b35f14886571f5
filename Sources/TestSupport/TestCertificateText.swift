import COpenSSL

/// Collects what OpenSSL writes.
enum TestCertificateText {
    static func bytes(
        _ body: (OpaquePointer) -> Int32
    ) throws(TestCertificateFailure) -> [UInt8] {
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
