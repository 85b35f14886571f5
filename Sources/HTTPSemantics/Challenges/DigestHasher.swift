/// The hash of a content that comes in pieces, for answers that protect the content too (`auth-int`).
package enum DigestHasher: Sendable {
    case md5(MD5)
    case sha256(SHA256)

    package init(_ hash: DigestAlgorithm.Hash) {
        self =
            switch hash {
            case .md5: .md5(MD5())
            case .sha256: .sha256(SHA256())
            }
    }

    package mutating func update(_ bytes: [UInt8]) { self.update(bytes.span) }

    package mutating func update(_ bytes: Span<UInt8>) {
        switch self {
        case .md5(var hash):
            hash.update(bytes)
            self = .md5(hash)
        case .sha256(var hash):
            hash.update(bytes)
            self = .sha256(hash)
        }
    }

    /// Of all the bytes so far, in lower-case hexadecimal.
    package func finalize() -> String {
        let digest =
            switch self {
            case .md5(let hash): hash.finalize()
            case .sha256(let hash): hash.finalize()
            }
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }
}
