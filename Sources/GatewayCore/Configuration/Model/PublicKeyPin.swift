/// The SHA-256 of a certificate's public key (its SubjectPublicKeyInfo, RFC 7469 §2.4).
package struct PublicKeyPin: Sendable, Hashable {
    /// 32 bytes.
    package let digest: [UInt8]

    /// - Returns: `nil` unless there are 32 bytes.
    package init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }
}
