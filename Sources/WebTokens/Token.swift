import WireText

/// A verified token's claims (RFC 7519 §4).
package struct Token: Sendable, Equatable {
    package let algorithm: TokenAlgorithm
    /// The `kid` of its header.
    package let keyIdentifier: String?
    /// The claims as they were signed: a JSON object.
    package let json: [UInt8]
    private let claims: [Claim]

    /// `sub`: for whom the token was issued.
    package let subject: String?
    /// `iss`.
    package let issuer: String?
    /// `aud`; empty if there is none.
    package let audience: [String]
    /// `jti`.
    package let identifier: String?
    /// `exp` in seconds since 1970; a fraction counts as a whole second.
    package let expiry: Int64?
    /// `nbf`, likewise.
    package let notBefore: Int64?
    /// `iat` in seconds since 1970, without a fraction. Not compared with the clock.
    package let issuedAt: Int64?

    private struct Claim: Sendable, Equatable {
        let name: MemberName
        /// In `json`, without whitespace around it.
        let value: Range<Int>
    }

    /// - Parameter json: whose signature was verified.
    init(algorithm: TokenAlgorithm, keyIdentifier: String?, json: [UInt8]) throws(TokenError) {
        guard String(validating: json, as: UTF8.self) != nil else { throw .malformed("the claims are not UTF-8") }
        self.algorithm = algorithm
        self.keyIdentifier = keyIdentifier
        self.json = json
        let claims = try Self.readClaims(json)
        self.claims = claims
        func reader(_ name: String) -> JSONReader? { Self.reader(name, claims, json) }
        self.subject = try reader("sub").map { (claim) throws(TokenError) in try claim.text("sub") }
        self.issuer = try reader("iss").map { (claim) throws(TokenError) in try claim.text("iss") }
        self.identifier = try reader("jti").map { (claim) throws(TokenError) in try claim.text("jti") }
        self.audience = try reader("aud").map { (claim) throws(TokenError) in try claim.textOrTexts("aud") } ?? []
        self.expiry = try reader("exp").map { (claim) throws(TokenError) in try claim.time("exp", .up) }
        self.notBefore = try reader("nbf").map { (claim) throws(TokenError) in try claim.time("nbf", .up) }
        self.issuedAt = try reader("iat").map { (claim) throws(TokenError) in try claim.time("iat", .down) }
    }

    private static func readClaims(_ json: [UInt8]) throws(TokenError) -> [Claim] {
        var claims: [Claim] = []
        var names: Set<MemberName> = []
        do throws(JSONSyntaxError) {
            var reader = JSONReader(json, maximumDepth: CompactSignature.depthLimit)
            try reader.readObject { (name, value) throws(JSONSyntaxError) in
                guard names.insert(name).inserted else {
                    throw JSONSyntaxError(.invalid("a claim twice"), at: value.offset)
                }
                claims.append(Claim(name: name, value: try value.skipValue()))
            }
            try reader.finish()
        } catch {
            throw .malformed("claims: \(error)")
        }
        return claims
    }

    /// - Returns: `nil` without such a claim, and for null, which issuers write for it.
    private static func reader(_ name: String, _ claims: [Claim], _ json: [UInt8]) -> JSONReader? {
        guard let claim = claims.first(where: { $0.name == MemberName(name) }) else { return nil }
        var reader = JSONReader(json, in: claim.value, maximumDepth: CompactSignature.depthLimit)
        return reader.nextKind() == .null ? nil : reader
    }

    private func reader(_ name: String) -> JSONReader? { Self.reader(name, self.claims, self.json) }

    // MARK: Any claim

    /// Names of all claims in the order of the token.
    package var claimNames: [String] { self.claims.map(\.name.text) }

    /// JSON text of a claim as it was signed; `nil` if there is none of the name.
    package func rawClaim(_ name: String) -> [UInt8]? {
        self.claims.first { $0.name == MemberName(name) }.map { Array(self.json[$0.value]) }
    }

    /// A claim as one text: a string decoded, a number or boolean as it was signed; `nil` if the token has no such claim,
    /// and for null, arrays and objects.
    package func textClaim(_ name: String) -> String? {
        guard var reader = self.reader(name), let kind = reader.nextKind() else { return nil }
        switch kind {
        case .string: return try? reader.readString()
        case .number, .boolean: return (try? reader.readRaw()).map { String(decoding: $0, as: UTF8.self) }
        case .object, .array, .null: return nil
        }
    }

    // MARK: Claims of Centrifugo's tokens, checked when they are read

    /// `channels`: channels that a connection subscribes to at once.
    package func channels() throws(TokenError) -> [String]? {
        try self.reader("channels").map { (claim) throws(TokenError) in try claim.texts("channels") }
    }

    /// `subs`: like `channels`, with a JSON object of options for each, in the token's order.
    package func subscriptions() throws(TokenError) -> [(channel: String, options: [UInt8])]? {
        guard var reader = self.reader("subs") else { return nil }
        var subscriptions: [(channel: String, options: [UInt8])] = []
        do throws(JSONSyntaxError) {
            try reader.readObject { (name, value) throws(JSONSyntaxError) in
                subscriptions.append((name.text, try value.readRaw()))
            }
        } catch {
            throw .malformed("claim subs is no object")
        }
        return subscriptions
    }

    /// `info`: JSON text of any kind about the user, shown to others.
    package var info: [UInt8]? { self.reader("info") == nil ? nil : self.rawClaim("info") }

    /// `b64info`: like `info`, bytes in base64.
    package func binaryInfo() throws(TokenError) -> [UInt8]? { try self.binary("b64info") }

    /// `data` of a subscription token: JSON text of any kind for the client that subscribes.
    package var data: [UInt8]? { self.reader("data") == nil ? nil : self.rawClaim("data") }

    /// `b64data`: like `data`, bytes in base64.
    package func binaryData() throws(TokenError) -> [UInt8]? { try self.binary("b64data") }

    private func binary(_ name: String) throws(TokenError) -> [UInt8]? {
        guard let claim = self.reader(name) else { return nil }
        guard let bytes = Base64.decoded(try claim.text(name).utf8) else {
            throw .malformed("claim \(name) is not base64")
        }
        return bytes
    }

    /// `meta`: JSON text about the connection for the server's side only.
    package var meta: [UInt8]? { self.reader("meta") == nil ? nil : self.rawClaim("meta") }

    /// `channel`: the channel of a subscription token.
    package func channel() throws(TokenError) -> String? {
        try self.reader("channel").map { (claim) throws(TokenError) in try claim.text("channel") }
    }

    /// `client`: the connection that a subscription token is for.
    package func client() throws(TokenError) -> String? {
        try self.reader("client").map { (claim) throws(TokenError) in try claim.text("client") }
    }

    /// `expire_at`: when the connection or subscription ends, in place of `exp`, in seconds since 1970; 0 for never.
    package func expireAt() throws(TokenError) -> Int64? {
        try self.reader("expire_at").map { (claim) throws(TokenError) in try claim.time("expire_at", .up) }
    }
}

extension JSONReader {
    /// Largest and smallest time of a claim: whole numbers up to here are exact in `Double` too.
    private static let timeLimit = 9_007_199_254_740_991.0

    fileprivate func text(_ name: String) throws(TokenError) -> String {
        var reader = self
        guard let text = try? reader.readString() else { throw .malformed("claim \(name) is no string") }
        return text
    }

    fileprivate func texts(_ name: String) throws(TokenError) -> [String] {
        var reader = self
        var texts: [String] = []
        do throws(JSONSyntaxError) {
            try reader.readArray { (element) throws(JSONSyntaxError) in texts.append(try element.readString()) }
        } catch {
            throw .malformed("claim \(name) is no array of strings")
        }
        return texts
    }

    fileprivate func textOrTexts(_ name: String) throws(TokenError) -> [String] {
        var reader = self
        if reader.nextKind() == .array { return try self.texts(name) }
        return [try self.text(name)]
    }

    /// A NumericDate (RFC 7519 §2).
    fileprivate func time(_ name: String, _ rule: FloatingPointRoundingRule) throws(TokenError) -> Int64 {
        var reader = self
        guard let number = try? reader.readDouble() else { throw .malformed("claim \(name) is no number") }
        guard number.magnitude <= Self.timeLimit, let time = Int64(exactly: number.rounded(rule)) else {
            throw .malformed("claim \(name) is out of range")
        }
        return time
    }
}
