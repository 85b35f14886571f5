/// The keys that tokens are verified with.
package struct TokenKeySet: Sendable {
    /// Most keys in one set: a token without `kid` is tried with every key of its algorithm.
    package static let countLimit = 64
    /// Largest file or answer that holds keys, in bytes.
    package static let byteLimit = 256 * 1024

    package internal(set) var keys: [TokenKey]
    /// Keys of a document that are not for verifying tokens, with the reasons, for a log.
    package internal(set) var ignored: [String] = []
    /// Keys of a document that are too weak or cannot be read, with the reasons.
    package internal(set) var refused: [String] = []

    package init(_ keys: [TokenKey]) {
        self.keys = keys
    }

    /// Reads the content of a file: PEM with public keys or certificates, or a JSON Web Key Set (RFC 7517 §5), or one JSON
    /// Web Key.
    /// - Throws: also if the document holds no key that can be used, or one that is too weak.
    package static func read(file bytes: [UInt8]) throws(TokenKeyProblem) -> TokenKeySet {
        guard bytes.count <= Self.byteLimit else { throw TokenKeyProblem("is longer than \(Self.byteLimit) bytes") }
        guard PEMText.isPEM(bytes) else {
            let set = try JSONWebKeys.read(bytes, allowsSecrets: true)
            if let reason = set.refused.first { throw TokenKeyProblem(reason) }
            return try set.checked()
        }
        let keys = try PEMText.keys(bytes)
        guard keys.count <= Self.countLimit else {
            throw TokenKeyProblem("has \(keys.count) keys, more than \(Self.countLimit)")
        }
        return try TokenKeySet(keys).checked()
    }

    /// Reads a JSON Web Key Set that a server published. Secrets in it are ignored: they would be public. So that one bad
    /// key does not make the others useless, it is only listed in `refused`.
    /// - Throws: also if no key can be used.
    package static func read(published bytes: [UInt8]) throws(TokenKeyProblem) -> TokenKeySet {
        guard bytes.count <= Self.byteLimit else { throw TokenKeyProblem("is longer than \(Self.byteLimit) bytes") }
        return try JSONWebKeys.read(bytes, allowsSecrets: false).checked()
    }

    /// Reads the content of a secret file: one line; a line end behind it does not count.
    /// - Parameter allowsShort: see `TokenKey.init(secret:)`.
    package static func read(secret bytes: [UInt8], allowsShort: Bool = false) throws(TokenKeyProblem) -> TokenKeySet {
        var secret = bytes
        if secret.last == 0x0A { secret.removeLast() }
        if secret.last == 0x0D { secret.removeLast() }
        guard !PEMText.isPEM(secret) else {
            throw TokenKeyProblem("holds a PEM block, not a secret: a public key is known to anyone")
        }
        return TokenKeySet([try TokenKey(secret: secret, allowsShort: allowsShort)])
    }

    /// Names of the keys in their order; the empty text for none.
    package var identifiers: [String] { self.keys.map { $0.identifier ?? "" } }

    private func checked() throws(TokenKeyProblem) -> TokenKeySet {
        guard self.keys.isEmpty else { return self }
        let reasons = (self.refused + self.ignored).prefix(3).joined(separator: "; ")
        throw TokenKeyProblem("holds no key that can be used" + (reasons.isEmpty ? "" : ": \(reasons)"))
    }

    /// Keys that a token may have been signed with.
    ///
    /// - Parameter identifier: the `kid` of the token's header; `nil` if it has none. It selects the keys of that name. Keys
    ///   without a name, such as those of PEM files, are candidates if no key has it.
    func candidates(identifier: String?) -> [TokenKey] {
        guard let identifier else { return self.keys }
        let named = self.keys.filter { $0.isNamed(identifier) }
        return named.isEmpty ? self.keys.filter { $0.identifier == nil } : named
    }

    /// Whether there is a key of that name; for `nil`, whether there are any.
    func contains(identifier: String?) -> Bool {
        guard let identifier else { return !self.keys.isEmpty }
        return self.keys.contains { $0.isNamed(identifier) }
    }
}

extension TokenKey {
    fileprivate func isNamed(_ identifier: String) -> Bool {
        self.identifier?.utf8.elementsEqual(identifier.utf8) ?? false
    }
}
