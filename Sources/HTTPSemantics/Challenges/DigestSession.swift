/// The answers to one Digest challenge: counts how often a nonce has served, and takes the next (RFC 7616 §3.4).
package struct DigestSession: Sendable {
    /// What another challenge means, once one was answered.
    package enum Verdict: Equatable, Sendable {
        /// Only the nonce was too old: answer again.
        case answerAgain
        /// The name or the password is wrong.
        case wrongCredential
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
        self.challenge.preferredProtection == .authInt ? self.challenge.algorithm.hasher : nil
    }

    /// The value of `Authorization` or `Proxy-Authorization` for one request.
    /// - Parameter clientNonce: by chance and new for each request, at least 64 bits of it, made of visible ASCII.
    package mutating func fieldValue(for request: DigestRequest, clientNonce: String) -> String {
        self.useCount = self.useCount == .max ? 1 : self.useCount + 1
        let algorithm = self.challenge.algorithm
        let secret = self.secret(clientNonce: clientNonce)
        let protection = self.challenge.preferredProtection
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
    package mutating func challenged(again challenge: DigestChallenge) -> Verdict {
        guard challenge.isStale, challenge.realm == self.challenge.realm else { return .wrongCredential }
        self.challenge = challenge
        self.nonce = challenge.nonce
        self.useCount = 0
        self.sessionSecret = nil
        return .answerAgain
    }
}
