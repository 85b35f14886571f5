/// The SHA-256 of a token's text. A token is made of 256 random bits, so that neither salt nor slowness would add to it.
package struct TokenHash: Sendable, Equatable {
    /// 32 bytes.
    package let digest: [UInt8]

    /// - Returns: `nil` unless there are 32 bytes.
    package init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    /// Looks at every byte whatever the first ones say, so that the time tells nothing.
    package func matches(_ other: [UInt8]) -> Bool {
        guard other.count == self.digest.count else { return false }
        return zip(self.digest, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
