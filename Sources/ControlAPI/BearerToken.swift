/// A bearer token as text (RFC 6750): the secret that a client shows, and the hash that the configuration keeps.
package enum BearerToken {
    /// So that a secret is known for one wherever it is found.
    package static let prefix = "slc_"
    /// Random bytes of a secret: too many to guess, so that a fast hash does.
    package static let randomByteCount = 32
    package static let hashPrefix = "sha256:"

    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The secret of these random bytes: the prefix, and base64url without padding (RFC 4648 §5).
    package static func secret(_ random: [UInt8]) -> String {
        var text = Array(self.prefix.utf8)
        var bits = 0
        var count = 0
        for byte in random {
            bits = (bits << 8 | Int(byte)) & 0xFFFF
            count += 8
            while count >= 6 {
                count -= 6
                text.append(self.letters[bits >> count & 0x3F])
            }
        }
        if count > 0 { text.append(self.letters[bits << (6 - count) & 0x3F]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// As the configuration has it.
    /// - Parameter digest: SHA-256 of the whole secret's UTF-8.
    package static func hash(digest: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return self.hashPrefix
            + String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }
}
