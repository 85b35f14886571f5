/// The hash of a Digest challenge (RFC 7616 §3.3), and whether its secret lasts for a session.
package struct DigestAlgorithm: Equatable, Sendable {
    package enum Hash: Equatable, Sendable {
        case md5
        case sha256
    }

    package let hash: Hash
    /// The `-sess` variant: the secret is bound to the first nonces that were exchanged.
    package let isSession: Bool
    /// As the server wrote it, which is how it goes back.
    package let name: String

    /// - Parameter name: `nil` where the challenge names none, which means MD5.
    /// - Returns: `nil` for an algorithm that is unknown here: such a challenge must be ignored.
    package init?(name: String?) {
        self.name = name ?? "MD5"
        switch self.name.loweredASCII {
        case "md5": (self.hash, self.isSession) = (.md5, false)
        case "md5-sess": (self.hash, self.isSession) = (.md5, true)
        case "sha-256": (self.hash, self.isSession) = (.sha256, false)
        case "sha-256-sess": (self.hash, self.isSession) = (.sha256, true)
        default: return nil
        }
    }

    package var hasher: DigestHasher { DigestHasher(self.hash) }

    /// The hash of `text`, in hexadecimal.
    func hexadecimal(_ text: String) -> String {
        var hasher = self.hasher
        hasher.update(Array(text.utf8))
        return hasher.finalize()
    }
}
