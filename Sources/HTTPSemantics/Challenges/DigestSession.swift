import WireText

/// Digest credentials for one challenge: counts the uses of a nonce and adopts the next one (RFC 7616 §3.4).
package struct DigestSession: Sendable {
    /// How to handle a challenge in response to our credentials.
    package enum RetryDecision: Equatable, Sendable {
        /// Only the nonce was stale: send the credentials again.
        case retry
        /// User or password is wrong.
        case wrongCredentials
    }

    package private(set) var challenge: DigestChallenge
    private let user: String
    private let password: String
    private var nonce: String
    private var useCount: UInt32 = 0
    /// H(A1) of a `-sess` algorithm, derived from the first nonces.
    private var sessionSecret: String?

    package init(_ challenge: DigestChallenge, user: String, password: String) {
        self.challenge = challenge
        self.user = user
        self.password = password
        self.nonce = challenge.nonce
    }

    /// The hasher for the content of the next request; `nil` if `auth-int` is not used.
    package var contentHasher: DigestHasher? {
        self.challenge.preferredQOP == .authInt ? self.challenge.algorithm.hasher : nil
    }

    /// The value of `Authorization` or `Proxy-Authorization` for one request.
    /// - Parameter clientNonce: visible ASCII with at least 64 random bits, new for each request.
    package mutating func fieldValue(for request: DigestRequest, clientNonce: String) -> String {
        self.useCount = self.useCount == .max ? 1 : self.useCount + 1
        let algorithm = self.challenge.algorithm
        let secret = self.secret(clientNonce: clientNonce)
        let qop = self.challenge.preferredQOP
        let requestHash = Self.requestHash(request, qop: qop, algorithm: algorithm)
        let count = Self.hexadecimal(self.useCount)
        let response =
            switch qop {
            case .legacy: algorithm.hexadecimal("\(secret):\(self.nonce):\(requestHash)")
            case .auth: algorithm.hexadecimal("\(secret):\(self.nonce):\(count):\(clientNonce):auth:\(requestHash)")
            case .authInt:
                algorithm.hexadecimal("\(secret):\(self.nonce):\(count):\(clientNonce):auth-int:\(requestHash)")
            }
        var parts = Self.userParts(self.user, for: self.challenge)
        parts += [
            "realm=\(Self.quoted(self.challenge.realm))", "uri=\(Self.quoted(request.target))",
            "nonce=\(Self.quoted(self.nonce))", "response=\"\(response)\"", "algorithm=\(algorithm.name)",
        ]
        if let opaque = self.challenge.opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        if qop != .legacy || algorithm.isSession { parts.append("cnonce=\(Self.quoted(clientNonce))") }
        if qop != .legacy { parts += ["qop=\(qop == .auth ? "auth" : "auth-int")", "nc=\(count)"] }
        return "Digest " + parts.joined(separator: ", ")
    }

    /// H(A1) of RFC 7616 §3.4.2.
    private mutating func secret(clientNonce: String) -> String {
        let algorithm = self.challenge.algorithm
        let plain = algorithm.hexadecimal("\(self.user):\(self.challenge.realm):\(self.password)")
        guard algorithm.isSession else { return plain }
        let secret = self.sessionSecret ?? algorithm.hexadecimal("\(plain):\(self.nonce):\(clientNonce)")
        self.sessionSecret = secret
        return secret
    }

    /// Adopts `nextnonce` of `Authentication-Info` or `Proxy-Authentication-Info` (RFC 7616 §3.5).
    package mutating func received(authenticationLines: [String]) {
        // The field has parameters without a scheme.
        let info = Challenge.parse(authenticationLines.map { "Digest " + $0 }).first
        guard let next = info?.parameter("nextnonce"), !next.isEmpty, next != self.nonce else { return }
        self.nonce = next
        self.useCount = 0
    }

    /// Handles a challenge in response to our credentials.
    package mutating func rechallenged(by challenge: DigestChallenge) -> RetryDecision {
        guard challenge.isStale, challenge.realm == self.challenge.realm else { return .wrongCredentials }
        self.challenge = challenge
        self.nonce = challenge.nonce
        self.useCount = 0
        self.sessionSecret = nil
        return .retry
    }

    /// H(A2) of RFC 7616 §3.4.3.
    private static func requestHash(
        _ request: DigestRequest, qop: DigestChallenge.QualityOfProtection, algorithm: DigestAlgorithm
    ) -> String {
        switch qop {
        case .legacy, .auth: return algorithm.hexadecimal("\(request.method):\(request.target)")
        case .authInt:
            let content = request.contentHash ?? algorithm.hexadecimal("")
            return algorithm.hexadecimal("\(request.method):\(request.target):\(content)")
        }
    }

    /// The `username` parameters: hashed, quoted or extended (RFC 7616 §3.4, §3.4.4).
    private static func userParts(_ user: String, for challenge: DigestChallenge) -> [String] {
        if challenge.hashesUser {
            return ["username=\"\(challenge.algorithm.hexadecimal("\(user):\(challenge.realm)"))\"", "userhash=true"]
        }
        let isPlain = user.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        if isPlain || !challenge.usesUTF8 { return ["username=\(self.quoted(user))"] }
        return ["username*=UTF-8''" + PercentCoding.encoded(user, allowing: ExtendedValue.isAttributeCharacter)]
    }

    /// A quoted string; control characters are dropped.
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 where !byte.isControl {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The eight digits of `nc`.
    private static func hexadecimal(_ count: UInt32) -> String {
        let digits = String(count, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}

/// A parsed Digest challenge (RFC 7616 §3.3).
package struct DigestChallenge: Equatable, Sendable {
    /// `qop`: what the response hash covers.
    fileprivate enum QualityOfProtection: Equatable, Sendable {
        /// No `qop`, for servers that only implement RFC 2069.
        case legacy
        /// Method and target.
        case auth
        /// Method, target and content.
        case authInt
    }

    package let realm: String
    package let nonce: String
    package let opaque: String?
    package let algorithm: DigestAlgorithm
    /// The values that the server accepts and we support; never empty.
    private let offeredQOPs: [QualityOfProtection]
    /// Whether only the nonce was stale, so that the same credentials should be sent again.
    package let isStale: Bool
    /// Whether the user name is sent hashed.
    fileprivate let hashesUser: Bool
    fileprivate let usesUTF8: Bool
    /// URI references of the protection space; empty for the whole origin.
    package let domain: [String]

    /// - Returns: `nil` for another scheme, without realm or nonce, and for an unsupported algorithm or `qop`.
    package init?(_ challenge: Challenge) {
        guard challenge.scheme == .digest, let realm = challenge.realm, let nonce = challenge.parameter("nonce"),
            let algorithm = DigestAlgorithm(name: challenge.parameter("algorithm"))
        else { return nil }
        let names = challenge.parameter("qop").map { FieldList.elements([$0]).map(\.loweredASCII) }
        self.offeredQOPs = names.map(Self.parseQOP) ?? [.legacy]
        guard !self.offeredQOPs.isEmpty else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge.parameter("opaque")
        self.algorithm = algorithm
        self.isStale = challenge.parameter("stale")?.matchesIgnoringCase("true") ?? false
        self.hashesUser = challenge.parameter("userhash")?.matchesIgnoringCase("true") ?? false
        self.usesUTF8 = challenge.parameter("charset")?.matchesIgnoringCase("UTF-8") ?? false
        self.domain = challenge.parameter("domain")?.split(separator: " ").prefix(64).map(String.init) ?? []
    }

    private static func parseQOP(_ names: [String]) -> [QualityOfProtection] {
        if names.isEmpty { return [.legacy] }
        return names.compactMap { name in
            switch name {
            case "auth": .auth
            case "auth-int": .authInt
            default: nil
            }
        }
    }

    /// `auth` if the server accepts it: `authInt` needs the hash of the content before its first byte is sent.
    fileprivate var preferredQOP: QualityOfProtection {
        self.offeredQOPs.contains(.auth) ? .auth : self.offeredQOPs.first ?? .legacy
    }
}

/// The `algorithm` of a Digest challenge (RFC 7616 §3.3).
package struct DigestAlgorithm: Equatable, Sendable {
    package enum Hash: Equatable, Sendable {
        case md5
        case sha256
        case sha512Truncated
    }

    package let hash: Hash
    /// The `-sess` variant: the secret is bound to the first nonces exchanged.
    fileprivate let isSession: Bool
    /// As received, which is how it is sent back.
    package let name: String

    /// - Parameter name: `nil` if absent, which means MD5.
    /// - Returns: `nil` for an unsupported algorithm: such a challenge must be ignored.
    package init?(name: String?) {
        self.name = name ?? "MD5"
        switch self.name.loweredASCII {
        case "md5": (self.hash, self.isSession) = (.md5, false)
        case "md5-sess": (self.hash, self.isSession) = (.md5, true)
        case "sha-256": (self.hash, self.isSession) = (.sha256, false)
        case "sha-256-sess": (self.hash, self.isSession) = (.sha256, true)
        case "sha-512-256": (self.hash, self.isSession) = (.sha512Truncated, false)
        case "sha-512-256-sess": (self.hash, self.isSession) = (.sha512Truncated, true)
        default: return nil
        }
    }

    package var hasher: DigestHasher { DigestHasher(self.hash) }

    func hexadecimal(_ text: String) -> String {
        var hasher = self.hasher
        hasher.update(Array(text.utf8))
        return hasher.finalize()
    }
}

/// The parts of a request that Digest credentials cover.
package struct DigestRequest: Equatable, Sendable {
    package let method: String
    /// The request target of the request line: path and query, or an authority for CONNECT.
    package let target: String
    /// The hash of the content by `DigestHasher`; `nil` without content, and for `auth`.
    package let contentHash: String?

    package init(method: String, target: String, contentHash: String? = nil) {
        self.method = method
        self.target = target
        self.contentHash = contentHash
    }
}

/// Incremental hash of the content for `auth-int`.
package struct DigestHasher: Sendable {
    private var digest: MessageDigest

    package init(_ hash: DigestAlgorithm.Hash) {
        switch hash {
        case .md5: self.digest = MessageDigest(.md5)
        case .sha256: self.digest = MessageDigest(.sha256)
        case .sha512Truncated: self.digest = MessageDigest(.sha512Truncated)
        }
    }

    package mutating func update(_ bytes: [UInt8]) { self.digest.update(bytes.span.bytes) }

    package mutating func update(_ bytes: Span<UInt8>) { self.digest.update(bytes.bytes) }

    /// The hash of all bytes so far, in lower-case hexadecimal.
    package func finalize() -> String { Hexadecimal.text(self.digest.finalize()) }
}
