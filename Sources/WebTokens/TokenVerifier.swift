import Synchronization

/// Verifies tokens with keys that can be replaced at any time. May be used from any thread.
package final class TokenVerifier: Sendable {
    /// What a token must satisfy besides its signature.
    package struct Rules: Sendable, Hashable {
        /// Size of a token in bytes above which it is refused, unless configured.
        package static let usualByteLimit = 8 * 1024
        package static let largestByteLimit = 16 * 1024

        /// Algorithms that are accepted, of those that the keys are for.
        package var algorithms: Set<TokenAlgorithm>
        /// One of these must be among the token's `aud`; if empty, `aud` is not checked.
        package var audiences: [String]
        /// Must be the token's `iss`; if `nil`, `iss` is not checked.
        package var issuer: String?
        /// Seconds by which the clocks of issuer and verifier may differ. Counts for `exp` and `nbf`.
        package var leeway: Int64
        /// Whether a token without `exp` is refused.
        package var requiresExpiry: Bool
        /// Larger tokens are refused; at most 16 KiB.
        package var byteLimit: Int

        package init(
            algorithms: Set<TokenAlgorithm> = Set(TokenAlgorithm.allCases), audiences: [String] = [],
            issuer: String? = nil, leeway: Int64 = 0, requiresExpiry: Bool = false,
            byteLimit: Int = Self.usualByteLimit
        ) {
            self.algorithms = algorithms
            self.audiences = audiences
            self.issuer = issuer
            self.leeway = max(0, min(leeway, 1 << 32))
            self.requiresExpiry = requiresExpiry
            self.byteLimit = min(byteLimit, Self.largestByteLimit)
        }
    }

    package let rules: Rules
    private let current: Mutex<TokenKeySet>
    private let unknownKeyObserver = Mutex<(@Sendable () -> Void)?>(nil)

    package init(_ rules: Rules = Rules(), keys: TokenKeySet) {
        self.rules = rules
        self.current = Mutex(keys)
    }

    package var keys: TokenKeySet { self.current.withLock { $0 } }

    /// Verifications that began earlier end with the former keys.
    package func replaceKeys(_ keys: TokenKeySet) {
        self.current.withLock { $0 = keys }
    }

    /// - Parameter observer: called, on the thread that verifies, for each token whose key is unknown; replaces a former
    ///   one. Anyone can make such tokens.
    package func observeUnknownKeys(_ observer: @escaping @Sendable () -> Void) {
        self.unknownKeyObserver.withLock { $0 = observer }
    }

    /// - Parameters:
    ///   - token: in the compact form (RFC 7515 §7.1), without anything around it.
    ///   - now: in whole seconds since 1970.
    /// - Throws: the first reason against it, in this order: size, form, algorithm, key, signature, claims, times, issuer,
    ///   audience.
    package func verify(_ token: String, now: Int64) throws(TokenError) -> Token {
        guard token.utf8.count <= self.rules.byteLimit else { throw .tooLong(limit: self.rules.byteLimit) }
        return try self.verify(Array(token.utf8), now: now)
    }

    package func verify(_ token: [UInt8], now: Int64) throws(TokenError) -> Token {
        guard token.count <= self.rules.byteLimit else { throw .tooLong(limit: self.rules.byteLimit) }
        let parts = try CompactSignature(token)
        guard let algorithm = TokenAlgorithm(name: parts.algorithm), self.rules.algorithms.contains(algorithm)
        else {
            throw .algorithmRefused(LogText.shortened(parts.algorithm))
        }
        try self.checkSignature(of: parts, algorithm)
        let verified = try Token(algorithm: algorithm, keyIdentifier: parts.keyIdentifier, json: parts.payload)
        try self.checkTimes(of: verified, now: now)
        if let issuer = self.rules.issuer, !(verified.issuer?.utf8.elementsEqual(issuer.utf8) ?? false) {
            throw .wrongIssuer
        }
        let isMeant =
            self.rules.audiences.isEmpty
            || self.rules.audiences.contains { own in
                verified.audience.contains { $0.utf8.elementsEqual(own.utf8) }
            }
        guard isMeant else { throw .wrongAudience }
        return verified
    }

    private func checkSignature(of parts: CompactSignature, _ algorithm: TokenAlgorithm) throws(TokenError) {
        let keys = self.keys
        let candidates = keys.candidates(identifier: parts.keyIdentifier)
        let suitable = candidates.filter { $0.algorithms.contains(algorithm) }
        let isSigned = suitable.contains { $0.isSignature(parts.signature, of: parts.signed, by: algorithm) }
        guard !isSigned else { return }
        // Keys without a name were tried instead; the token's own may have been published meanwhile.
        if !keys.contains(identifier: parts.keyIdentifier) { self.unknownKeyObserver.withLock(\.self)?() }
        guard !candidates.isEmpty else {
            let name = keys.keys.isEmpty ? nil : parts.keyIdentifier
            throw .unknownKey(name.map { LogText.shortened($0) })
        }
        throw suitable.isEmpty ? .algorithmRefused(algorithm.rawValue) : .badSignature
    }

    private func checkTimes(of token: Token, now: Int64) throws(TokenError) {
        // Claims and leeway are within 53 bits: the sums do not overflow.
        if let expiry = token.expiry {
            guard now < expiry + self.rules.leeway else { throw .expired(at: expiry) }
        } else if self.rules.requiresExpiry {
            throw .malformed("claim exp is missing")
        }
        if let notBefore = token.notBefore, now < notBefore - self.rules.leeway {
            throw .notYetValid(before: notBefore)
        }
    }
}
