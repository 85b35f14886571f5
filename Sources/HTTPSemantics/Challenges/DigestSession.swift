/// The answers to one Digest challenge: counts how often a nonce has served, and takes the next (RFC 7616 §3.4).
package struct DigestSession: Sendable {
    /// What another challenge means, once one was answered.
    package enum RetryDecision: Equatable, Sendable {
        /// Only the nonce was too old: answer again.
        case retry
        /// The name or the password is wrong.
        case wrongCredentials
    }

    package private(set) var challenge: DigestChallenge
    private let user: String
    private let password: String
    private var nonce: String
    private var useCount: UInt32 = 0
    /// Of the `-sess` algorithms: made with the first nonces, and kept.
    private var sessionSecret: String?

    package init(_ challenge: DigestChallenge, user: String, password: String) {
        self.challenge = challenge
        self.user = user
        self.password = password
        self.nonce = challenge.nonce
    }

    /// How the content is to be hashed for the next answer; `nil` where it need not be.
    package var contentHasher: DigestHasher? {
        self.challenge.preferredQOP == .authInt ? self.challenge.algorithm.hasher : nil
    }

    /// The value of `Authorization` or `Proxy-Authorization` for one request.
    /// - Parameter clientNonce: by chance and new for each request, at least 64 bits of it, made of visible ASCII.
    package mutating func fieldValue(for request: DigestRequest, clientNonce: String) -> String {
        self.useCount = self.useCount == .max ? 1 : self.useCount + 1
        let algorithm = self.challenge.algorithm
        let secret = self.secret(clientNonce: clientNonce)
        let protection = self.challenge.preferredQOP
        let requestHash = Self.requestHash(request, protection: protection, algorithm: algorithm)
        let count = Self.hexadecimal(self.useCount)
        let response =
            switch protection {
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
        if protection != .legacy || algorithm.isSession { parts.append("cnonce=\(Self.quoted(clientNonce))") }
        if protection != .legacy { parts += ["qop=\(protection == .auth ? "auth" : "auth-int")", "nc=\(count)"] }
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

    /// Takes what `Authentication-Info` or `Proxy-Authentication-Info` tells for the next request (RFC 7616 §3.5).
    package mutating func received(authenticationLines: [String]) {
        // The parameters stand there without a scheme.
        let told = Challenge.parse(authenticationLines.map { "Digest " + $0 }).first
        guard let next = told?.parameter("nextnonce"), !next.isEmpty, next != self.nonce else { return }
        self.nonce = next
        self.useCount = 0
    }

    /// Takes the challenge with which the server answered an answer.
    package mutating func rechallenged(by challenge: DigestChallenge) -> RetryDecision {
        guard challenge.isStale, challenge.realm == self.challenge.realm else { return .wrongCredentials }
        self.challenge = challenge
        self.nonce = challenge.nonce
        self.useCount = 0
        self.sessionSecret = nil
        return .retry
    }
}

extension DigestSession {
    /// A2 of RFC 7616 §3.4.3, hashed.
    static func requestHash(
        _ request: DigestRequest, protection: DigestChallenge.QualityOfProtection, algorithm: DigestAlgorithm
    ) -> String {
        switch protection {
        case .legacy, .auth: return algorithm.hexadecimal("\(request.method):\(request.target)")
        case .authInt:
            let content = request.contentHash ?? algorithm.hexadecimal("")
            return algorithm.hexadecimal("\(request.method):\(request.target):\(content)")
        }
    }

    /// `username`, in the form that holds it (RFC 7616 §3.4, §3.4.4).
    static func userParts(_ user: String, for challenge: DigestChallenge) -> [String] {
        if challenge.hashesUser {
            return ["username=\"\(challenge.algorithm.hexadecimal("\(user):\(challenge.realm)"))\"", "userhash=true"]
        }
        let isPlain = user.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        if isPlain || !challenge.usesUTF8 { return ["username=\(self.quoted(user))"] }
        return ["username*=UTF-8''" + PercentCoding.encoded(user, allowing: ExtendedValue.isAttributeCharacter)]
    }

    /// A quoted string; what it cannot hold is left out.
    static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 where !byte.isControl {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Eight digits, as `nc` wants them.
    static func hexadecimal(_ count: UInt32) -> String {
        let digits = String(count, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}

/// A challenge of the Digest scheme, understood (RFC 7616 §3.3).
package struct DigestChallenge: Equatable, Sendable {
    /// What the answer vouches for.
    package enum QualityOfProtection: Equatable, Sendable {
        /// The old form without `qop`, for servers that know no other (RFC 2069).
        case legacy
        /// The request's method and target.
        case auth
        /// Its content too.
        case authInt
    }

    package let realm: String
    package let nonce: String
    package let opaque: String?
    package let algorithm: DigestAlgorithm
    /// What the server accepts, never empty.
    package let offeredQOPs: [QualityOfProtection]
    /// Whether only the nonce was too old, so that the same name and password are to be tried again.
    package let isStale: Bool
    /// Whether the name goes hashed.
    package let hashesUser: Bool
    package let usesUTF8: Bool
    /// References of the paths that this is for; empty for all of the origin.
    package let domain: [String]

    /// - Returns: `nil` for another scheme, for one without realm or nonce, and for one that asks for what is unknown
    ///   here.
    package init?(_ challenge: Challenge) {
        guard challenge.scheme == .digest, let realm = challenge.realm, let nonce = challenge.parameter("nonce"),
            let algorithm = DigestAlgorithm(name: challenge.parameter("algorithm"))
        else { return nil }
        let qop = challenge.parameter("qop").map { FieldList.elements([$0]).map(\.loweredASCII) }
        self.offeredQOPs = qop.map(Self.known) ?? [.legacy]
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

    private static func known(_ qop: [String]) -> [QualityOfProtection] {
        if qop.isEmpty { return [.legacy] }
        return qop.compactMap { name in
            switch name {
            case "auth": .auth
            case "auth-int": .authInt
            default: nil
            }
        }
    }

    /// `auth` where the server takes it: `authInt` asks for the content's hash before the first byte of it goes out.
    package var preferredQOP: QualityOfProtection {
        self.offeredQOPs.contains(.auth) ? .auth : self.offeredQOPs.first ?? .legacy
    }
}

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

/// What a Digest answer says about the request that it goes with.
package struct DigestRequest: Equatable, Sendable {
    package let method: String
    /// The request's target as it stands in the request line: path and query, or an authority for CONNECT.
    package let target: String
    /// Of the content, by the challenge's algorithm, from `DigestHasher`; `nil` for a request without content, and
    /// wherever only `auth` is wanted.
    package let contentHash: String?

    package init(method: String, target: String, contentHash: String? = nil) {
        self.method = method
        self.target = target
        self.contentHash = contentHash
    }
}

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
