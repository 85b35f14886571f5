import GatewayConfiguration
import StreamTransport
import WebSocketProtocol
import WebTokens
import WireText

/// Admits the requests of a route that carry a valid token, and takes out of them what the route needs of it.
final class RouteAccess: Sendable {
    /// Longest time for which a connection's end is planned; a token that is valid for longer is not watched.
    private static let longestWatch: Int64 = 10 * 365 * 86_400

    private let settings: RouteAuth
    private let source: TokenSource
    /// Claims in the resources of the route's endpoints.
    private let pathClaims: [String]
    private let headers: [(name: String, value: ClaimTemplate)]

    init(_ settings: RouteAuth, source: TokenSource, route: RouteConfiguration, upstream: UpstreamConfiguration?) {
        self.settings = settings
        self.source = source
        let parameters = upstream?.endpoints.flatMap(\.url.resource.parameters) ?? []
        self.pathClaims = Array(Set(parameters.compactMap { ClaimParameter.claim(of: $0) })).sorted()
        self.headers = route.headers.map { ($0.name, ClaimTemplate($0.value)) }
    }

    /// Verifies the token of a request. Applies to requests of any kind.
    ///
    /// - Parameter now: in milliseconds since 1970.
    /// - Throws: 401 without a valid token, 400 for several, 403 if a claim is missing that the route needs, 503 while
    ///   there are no keys yet. The refusal's `detail` is for the log.
    func admit(
        _ head: RequestHead, _ match: RouteMatch, now: Int64
    ) throws(HandshakeRefusal) -> AccessGrant {
        let request = try TokenRequest(head, query: match.query, settings: self.settings)
        guard let text = request.token else { throw .tokenRequired }
        let token: Token
        do throws(TokenError) {
            token = try self.source.verifier.verify(text, now: Self.seconds(now))
        } catch {
            throw .tokenRefused(error)
        }
        return AccessGrant(
            head: request.head,
            match: RouteMatch(index: match.index, parameters: match.parameters, query: request.query),
            token: token, parameters: try self.parameters(of: token), fields: try self.fields(of: token),
            expiry: self.expiry(of: token, now: now), usesSubprotocol: request.usesSubprotocol)
    }

    private static func seconds(_ milliseconds: Int64) -> Int64 {
        milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0)
    }

    /// When a connection has to end with the token, in milliseconds since 1970; `nil` for never.
    private func expiry(of token: Token, now: Int64) -> Int64? {
        guard self.settings.closesWhenExpired, let expiry = token.expiry else { return nil }
        let seconds = expiry + self.source.verifier.rules.leeway
        return seconds - Self.seconds(now) < Self.longestWatch ? seconds * 1000 : nil
    }

    /// Values for the placeholders of `ResourceTemplate`, percent-encoded.
    private func parameters(of token: Token) throws(HandshakeRefusal) -> [String: String] {
        var parameters: [String: String] = [:]
        for claim in self.pathClaims {
            guard let value = token.textClaim(claim) else { throw .claimMissing(claim) }
            // An upstream may decode the segment before it resolves dots in it.
            guard !value.isEmpty, !PathTraversal.isPossible(with: value) else { throw .claimUnusable(claim) }
            parameters[ClaimParameter.prefix + claim] = PercentCoding.encoded(value)
        }
        return parameters
    }

    private func fields(of token: Token) throws(HandshakeRefusal) -> [HTTPField] {
        var fields: [HTTPField] = []
        for header in self.headers {
            guard let value = header.value.text({ token.textClaim($0) }) else {
                throw .claimMissing(header.value.claims.first { token.textClaim($0) == nil } ?? "")
            }
            if let empty = header.value.claims.first(where: { token.textClaim($0)?.isEmpty == true }) {
                throw .claimUnusable(empty)
            }
            let field = HTTPField(header.name, value)
            guard field.isWellFormed, value.utf8.count <= ExtraHeader.valueLimit else {
                throw .claimUnusable(header.value.claims.first ?? "")
            }
            fields.append(field)
        }
        return fields
    }
}

/// A request whose token was accepted.
struct AccessGrant: Sendable {
    /// The request without the token in its target and subprotocols.
    let head: RequestHead
    /// Likewise.
    let match: RouteMatch
    let token: Token
    /// Percent-encoded claims for the placeholders of the endpoints' resources.
    let parameters: [String: String]
    /// The route's header fields with the claims.
    let fields: [HTTPField]
    /// When the connection has to end, in milliseconds since 1970; `nil` for never.
    let expiry: Int64?
    /// Whether the token was offered as a subprotocol: the client expects an answer to `bearer`.
    let usesSubprotocol: Bool

    static let subprotocol = "bearer"

    /// For whom the token was issued.
    var subject: String? { self.token.subject }
}

/// The token of a request, and the request without it (RFC 6750 §2).
private struct TokenRequest {
    /// `nil` without one.
    private(set) var token: String?
    private(set) var head: RequestHead
    private(set) var query: String?
    private(set) var usesSubprotocol = false

    /// - Throws: 400 if the request carries several tokens.
    init(_ head: RequestHead, query: String?, settings: RouteAuth) throws(HandshakeRefusal) {
        self.head = head
        self.query = query
        var tokens = Self.authorization(head)
        if settings.usesSubprotocol { tokens += self.takeSubprotocol() }
        if let name = settings.query { tokens += self.takeParameter(name) }
        guard tokens.count <= 1 else { throw .severalTokens }
        // A browser adds cookies to every request: another token takes precedence.
        self.token = tokens.first ?? settings.cookie.flatMap { Self.cookie($0, head) }
    }

    /// Tokens of `Authorization` fields with the scheme `Bearer`; other schemes are the upstream's.
    private static func authorization(_ head: RequestHead) -> [String] {
        head.fields.values("Authorization").compactMap { value in
            let parts = value.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1)
            guard let scheme = parts.first, Substring(scheme).matchesIgnoringCase("Bearer") else { return nil }
            return parts.count == 2 ? Substring(parts[1]).trimmingBlanks : ""
        }
    }

    /// Takes the offer behind `bearer` out of the offers.
    private mutating func takeSubprotocol() -> [String] {
        var offers = self.head.fields.list("Sec-WebSocket-Protocol")
        let isOffered = { (offer: String) in offer.utf8.elementsEqual(AccessGrant.subprotocol.utf8) }
        guard let index = offers.firstIndex(where: isOffered), index + 1 < offers.count else { return [] }
        let token = offers.remove(at: index + 1)
        var fields = self.head.fields.all.filter { !$0.isNamed("Sec-WebSocket-Protocol") }
        fields.append(HTTPField("Sec-WebSocket-Protocol", offers.joined(separator: ", ")))
        self.head.fields = FieldLines(fields)
        self.usesSubprotocol = true
        return [token]
    }

    /// Takes all parameters of this name out of the query and the request's target.
    private mutating func takeParameter(_ name: String) -> [String] {
        guard let query = self.query else { return [] }
        var tokens: [String] = []
        let kept = query.split(separator: "&", omittingEmptySubsequences: false).filter { piece in
            guard let token = RouteMatch.value(of: name, inQueryPiece: piece) else { return true }
            tokens.append(token)
            return false
        }
        guard !tokens.isEmpty else { return [] }
        self.query = kept.isEmpty ? nil : kept.joined(separator: "&")
        let path = self.head.target.prefix { $0 != "?" }
        self.head.target = path + (self.query.map { "?\($0)" } ?? "")
        return tokens
    }

    /// The first cookie of this name: servers list the most specific one first (RFC 6265 §5.4).
    private static func cookie(_ name: String, _ head: RequestHead) -> String? {
        for field in head.fields.values("Cookie") {
            for pair in field.utf8.split(separator: UInt8(ascii: ";")) {
                let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, Substring(parts[0]).trimmingBlanks.utf8.elementsEqual(name.utf8) else {
                    continue
                }
                let value = Substring(parts[1]).trimmingBlanks
                let quote = UInt8(ascii: "\"")
                let isQuoted = value.utf8.count >= 2 && value.utf8.first == quote && value.utf8.last == quote
                return isQuoted ? String(Substring(value.utf8.dropFirst().dropLast())) : value
            }
        }
        return nil
    }
}

/// Refusals of tokens, with the challenges of RFC 6750 §3.
extension HandshakeRefusal {
    /// A request without any authentication gets no error code (§3.1).
    fileprivate static let tokenRequired = HandshakeRefusal(
        status: 401, explanation: "This path requires an access token.", fields: [Self.challenge()],
        detail: "no token")

    fileprivate static let severalTokens = HandshakeRefusal(
        status: 400, explanation: "Send one access token in one place.",
        fields: [Self.challenge("invalid_request", "More than one access token")], detail: "several tokens")

    fileprivate static func tokenRefused(_ error: TokenError) -> HandshakeRefusal {
        if case .unknownKey(nil) = error {
            return HandshakeRefusal(
                status: 503, explanation: "Access tokens cannot be verified yet; try again later.",
                fields: [HTTPField("Retry-After", "5")], detail: "no keys")
        }
        return HandshakeRefusal(
            status: 401, explanation: "\(error.summary).", fields: [Self.challenge("invalid_token", error.summary)],
            detail: error.description)
    }

    fileprivate static func claimMissing(_ name: String) -> HandshakeRefusal {
        Self.insufficient("The access token lacks a claim that this path requires", "claim \(name) is missing")
    }

    fileprivate static func claimUnusable(_ name: String) -> HandshakeRefusal {
        Self.insufficient(
            "A claim of the access token cannot be used for this path",
            "claim \(name) is empty or has characters that cannot be forwarded")
    }

    private static func insufficient(_ text: String, _ detail: String) -> HandshakeRefusal {
        HandshakeRefusal(
            status: 403, explanation: "\(text).", fields: [Self.challenge("insufficient_scope", text)], detail: detail)
    }

    /// - Parameter description: printable ASCII without quotes and backslashes.
    private static func challenge(_ error: String? = nil, _ description: String = "") -> HTTPField {
        let parameters = error.map { ", error=\"\($0)\", error_description=\"\(description)\"" } ?? ""
        return HTTPField("WWW-Authenticate", "Bearer realm=\"sluice\"" + parameters)
    }
}
