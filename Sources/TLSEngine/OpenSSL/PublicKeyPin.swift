import COpenSSL

/// The SHA-256 digest of a certificate's SubjectPublicKeyInfo (RFC 7469 §2.4).
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// 32 bytes.
    public let digest: [UInt8]

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    /// Parses base64, optionally with the prefix `sha256/` or in the form `pin-sha256="…"`.
    /// - Returns: `nil` unless the base64 has 44 characters and stands for 32 bytes.
    public init?(_ text: String) {
        var body = Substring(text)
        for prefix in ["pin-sha256=", "sha256/"] where body.hasPrefix(prefix) { body = body.dropFirst(prefix.count) }
        if body.hasPrefix("\""), body.hasSuffix("\""), body.count > 1 { body = body.dropFirst().dropLast() }
        guard let digest = Self.decode(Array(body.utf8)) else { return nil }
        self.digest = digest
    }

    /// `sha256/` followed by the digest in base64.
    public var description: String {
        "sha256/\(String(decoding: Self.encode(self.digest), as: UTF8.self))"
    }

    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 33)
        guard text.count == 44, unsafe EVP_DecodeBlock(&bytes, text, 44) == 33 else { return nil }
        let digest = Array(bytes.prefix(32))
        // Every pin has exactly one spelling.
        return self.encode(digest) == text ? digest : nil
    }

    private static func encode(_ digest: [UInt8]) -> [UInt8] {
        // OpenSSL appends a NUL.
        var text = [UInt8](repeating: 0, count: 45)
        let count = unsafe EVP_EncodeBlock(&text, digest, Int32(digest.count))
        return Array(text.prefix(Int(count)))
    }
}
