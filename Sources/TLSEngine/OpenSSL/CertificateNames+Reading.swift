import COpenSSL

extension CertificateNames {
    static let subjectLimit = 4096

    /// - Parameter der: one certificate.
    /// - Returns: `nil` for what is none, and for a subject of more than 4096 bytes.
    public init?(der: [UInt8]) {
        let parsed = unsafe der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var position = bytes.baseAddress
            return unsafe d2i_X509(nil, &position, bytes.count)
        }
        guard let certificate = unsafe parsed else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe X509_free(certificate) }
        guard let pin = unsafe CertificateFields.pin(of: certificate),
            let subject = unsafe CertificateFields.subject(of: certificate)
        else { return nil }
        self.init(
            subject: subject, alternativeNames: unsafe CertificateFields.alternativeNames(of: certificate), pin: pin)
    }
}

extension CertificateFields {
    fileprivate static func subject(of certificate: OpaquePointer) -> String? {
        let limit = CertificateNames.subjectLimit
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: limit) { buffer in
            let count = unsafe sluice_subject_text(certificate, buffer.baseAddress, Int32(limit))
            guard count >= 0 else { return nil }
            let bytes = unsafe buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    fileprivate static func alternativeNames(of certificate: OpaquePointer) -> [String] {
        var names: [String] = []
        unsafe withUnsafeMutablePointer(to: &names) { pointer in
            unsafe sluice_each_alternative_name(certificate, pointer) { context, bytes, count in
                let names = unsafe context?.assumingMemoryBound(to: [String].self)
                let text = unsafe UnsafeBufferPointer(start: bytes, count: Int(count))
                unsafe names?.pointee.append(String(decoding: text, as: UTF8.self))
            }
        }
        return names
    }
}
