import COpenSSL

/// The part of TLS 1.3's key schedule that lies behind the traffic secrets (RFC 8446 §7.1 to §7.3).
package enum KeySchedule {
    /// HKDF-Expand-Label without a context, for results no longer than the suite's hash: one block of HMAC.
    /// - Parameter target: takes `count` bytes; may be the secret itself.
    /// - Returns: whether it worked; only memory may lack.
    static func expand(
        _ secret: UnsafeRawPointer, _ suite: RecordSuite, label: StaticString, into target: UnsafeMutableRawPointer,
        count: Int
    ) -> Bool {
        guard count <= suite.secretLength else { return false }
        let hash = unsafe suite == .aes256GCM ? EVP_sha384() : EVP_sha256()
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(EVP_MAX_MD_SIZE)) { block in
            let worked = unsafe Self.withDescription(of: label, count: count) { description in
                unsafe HMAC(
                    hash, secret, Int32(suite.secretLength), description.baseAddress, description.count,
                    block.baseAddress, nil) != nil
            }
            if worked, let start = block.baseAddress { unsafe target.copyMemory(from: start, byteCount: count) }
            unsafe OPENSSL_cleanse(block.baseAddress, block.count)
            return worked
        }
    }

    /// The HkdfLabel of §7.1, and behind it the number of HKDF's first and only block (RFC 5869 §2.3).
    private static func withDescription<R>(
        of label: StaticString, count: Int, _ body: (UnsafeMutableBufferPointer<UInt8>) -> R
    ) -> R {
        let prefix: StaticString = "tls13 "
        let length = prefix.utf8CodeUnitCount + label.utf8CodeUnitCount
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length + 5) { bytes in
            unsafe bytes[0] = 0
            unsafe bytes[1] = UInt8(truncatingIfNeeded: count)
            unsafe bytes[2] = UInt8(truncatingIfNeeded: length)
            var end = 3
            for text in [prefix, label] {
                text.withUTF8Buffer { units in
                    for index in 0..<units.count { unsafe bytes[end + index] = unsafe units[index] }
                }
                end += text.utf8CodeUnitCount
            }
            unsafe bytes[end] = 0
            unsafe bytes[end + 1] = 1
            return unsafe body(bytes)
        }
    }

    /// For checks against published values.
    package static func expand(_ secret: [UInt8], _ suite: RecordSuite, label: StaticString, count: Int) -> [UInt8]? {
        guard secret.count == suite.secretLength, count >= 0, count <= suite.secretLength else { return nil }
        let from = SecretBytes(secret)
        let to = SecretBytes(count: count)
        guard unsafe Self.expand(from.start, suite, label: label, into: to.start, count: count) else { return nil }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: to.start, count: count))
    }
}
