/// The SHA-256 of a public key as it stands in a certificate (SubjectPublicKeyInfo), as RFC 7469 §2.4 pins it.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// 32 bytes.
    public let digest: [UInt8]

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    /// Reads the base64 form, bare or after `sha256/` or as `pin-sha256="…"`.
    /// - Returns: `nil` unless it is 44 characters of base64 for 32 bytes.
    public init?(_ text: String) {
        var body = Substring(text)
        for prefix in ["pin-sha256=", "sha256/"] where body.hasPrefix(prefix) { body = body.dropFirst(prefix.count) }
        if body.hasPrefix("\""), body.hasSuffix("\""), body.count > 1 { body = body.dropFirst().dropLast() }
        guard let digest = Self.decode(Array(body.utf8)) else { return nil }
        self.digest = digest
    }

    /// The form `sha256/…` with base64.
    public var description: String {
        "sha256/\(Self.encode(self.digest))"
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// 43 digits carry 258 bits; the last two must be zero, so that a pin has one spelling.
    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        guard text.count == 44, text[43] == UInt8(ascii: "=") else { return nil }
        var digest: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in text.dropLast() {
            guard let digit = Self.alphabet.firstIndex(of: character) else { return nil }
            bits = (bits << 6 | UInt32(digit)) & 0xFFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            digest.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        return bits & 3 == 0 && digest.count == 32 ? digest : nil
    }

    private static func encode(_ digest: [UInt8]) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in digest {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            count += 8
            while count >= 6 {
                count -= 6
                text.append(Self.alphabet[Int(bits >> UInt32(count)) & 63])
            }
        }
        if count > 0 { text.append(Self.alphabet[Int(bits << UInt32(6 - count)) & 63]) }
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }
}
