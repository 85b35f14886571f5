/// The text of a bearer token (RFC 6750): the secret that a client sends, and the hash stored in the configuration.
package enum BearerToken {
    /// Identifies the text as a secret, also for secret scanners.
    package static let prefix = "slc_"
    /// Random bytes of a secret. 256 bits cannot be guessed, so a fast hash is enough.
    package static let randomByteCount = 32
    package static let hashPrefix = "sha256:"

    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The prefix, and the random bytes in base64url without padding (RFC 4648 §5).
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

    /// The hash as written in the configuration.
    /// - Parameter digest: SHA-256 of the whole secret's UTF-8.
    package static func hash(digest: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return self.hashPrefix
            + String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }
}
