/// A challenge of the Digest scheme, understood (RFC 7616 §3.3).
package struct DigestChallenge: Equatable, Sendable {
    /// What the answer vouches for.
    package enum Protection: Equatable, Sendable {
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
    package let protections: [Protection]
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
        self.protections = qop.map(Self.known) ?? [.legacy]
        guard !self.protections.isEmpty else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge.parameter("opaque")
        self.algorithm = algorithm
        self.isStale = challenge.parameter("stale")?.matchesIgnoringCase("true") ?? false
        self.hashesUser = challenge.parameter("userhash")?.matchesIgnoringCase("true") ?? false
        self.usesUTF8 = challenge.parameter("charset")?.matchesIgnoringCase("UTF-8") ?? false
        self.domain = challenge.parameter("domain")?.split(separator: " ").prefix(64).map(String.init) ?? []
    }

    private static func known(_ qop: [String]) -> [Protection] {
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
    package var preferredProtection: Protection {
        self.protections.contains(.auth) ? .auth : self.protections.first ?? .legacy
    }
}
