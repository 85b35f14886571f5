import WebTokens
import WireText

/// How the tokens of one issuer are verified; routes refer to it by name.
package struct TokenSettings: Sendable, Equatable {
    /// Where the keys are.
    package enum Keys: Sendable, Equatable {
        /// Shared with the issuer (HS256, HS384, HS512).
        case secret(KeyPassword)
        /// PEM with public keys or certificates, or a JSON Web Key Set.
        case file(String)
        /// A JSON Web Key Set on a server.
        case url(KeySetURL)
    }

    package var name: String
    package var keys = Keys.secret(.text(""))
    /// Whether the secret may have less than 32 bytes.
    package var allowsShortSecret = false
    /// Between two requests to the server of a key set.
    package var refreshInterval = Duration.seconds(900)
    /// Empty is every algorithm that the keys are for.
    package var algorithms: [TokenAlgorithm] = []
    /// Empty accepts any.
    package var audiences: [String] = []
    /// `nil` accepts any.
    package var issuer: String?
    package var leeway = Duration.zero
    package var requiresExpiry = false
    /// Bytes of one token.
    package var maximumSize = TokenVerifier.Rules.usualByteLimit

    package init(name: String) {
        self.name = name
    }

    package var rules: TokenVerifier.Rules {
        TokenVerifier.Rules(
            algorithms: Set(self.algorithms.isEmpty ? TokenAlgorithm.allCases : self.algorithms),
            audiences: self.audiences, issuer: self.issuer, leeway: self.leeway.components.seconds,
            requiresExpiry: self.requiresExpiry, byteLimit: self.maximumSize)
    }
}

/// Address of a published JSON Web Key Set: `https`, or `http` of this machine.
package struct KeySetURL: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init(_ text: String) throws(ValueSyntaxError) {
        let url = try URLText(text, like: "https://id.example/keys.json")
        guard ["http", "https"].contains(url.scheme), url.transport.isEmpty else {
            throw ValueSyntaxError(
                expected: "a URL that begins with https",
                remedy: "write it like https://issuer.example/.well-known/jwks.json")
        }
        let host: String?
        switch try EndpointURL.location(url, default: url.scheme == "https" ? 443 : 80) {
        case .name(let name, _): host = name
        case .address(let address, _): host = address.isLoopback ? "localhost" : nil
        case .unix: host = nil
        }
        guard url.scheme == "https" || host == "localhost" else {
            throw ValueSyntaxError(
                expected: "https, because the keys could be replaced on their way over http",
                remedy: "http is accepted for addresses of this machine only")
        }
        self.description = text
    }
}

/// How a route authenticates its clients.
package struct RouteAuth: Sendable, Equatable {
    /// The entry of `tokens` that verifies.
    package var tokens: String
    /// Query parameter with the token (RFC 6750 §2.3); `nil` for none.
    package var query: String? = "access_token"
    package var cookie: String?
    /// Whether the token may follow `bearer` in `Sec-WebSocket-Protocol`.
    package var usesSubprotocol = false
    package var closesWhenExpired = true

    package init(tokens: String) {
        self.tokens = tokens
    }
}

/// Keys of an entry of `tokens`.
package typealias TokenSettingsKey = SettingsKeyName<TokenSettings>

extension TokenSettingsKey {
    package static var secret: Self { "secret" }
    package static var secretFile: Self { "secret-file" }
    package static var keyFile: Self { "key-file" }
    package static var keyURL: Self { "key-url" }
    fileprivate static var allowShortSecret: Self { "allow-short-secret" }
    fileprivate static var refreshInterval: Self { "refresh-interval" }
}

extension TokenSettings: SettingsSection {
    static let sectionName = "TokenVerifier"
    static let initial = TokenSettings(name: "")
    static let keys: [SettingsKey<TokenSettings>] =
        [
            .required("name", \.name, .name, "Name for routes and logs, unique among tokens.")
        ]
        + KeyPassword.keys(
            .secret, file: .secretFile, \.secret,
            """
            Secret shared with the issuer, for HS256 (at least 32 bytes), HS384 (48) and HS512 (64). Exactly one of \
            `secret`, `secret-file`, `key-file` and `key-url` is required
            """)
        + Self.keySources + Self.claimRules

    private static let keySources: [SettingsKey<TokenSettings>] = [
        .value(
            .allowShortSecret, \.allowsShortSecret, .boolean,
            """
            Accepts a secret of less than 32 bytes, for all of HS256, HS384 and HS512, as issuers have that cannot change \
            it. Who sees one token can find such a secret by trying, and then issue tokens.
            """),
        .custom(
            .keyFile, .value(ValueSyntax<String>.path), example: "/etc/sluice/issuer.pem",
            """
            File with the issuer's keys: PEM with public keys or certificates, or a JSON Web Key Set (RFC 7517). RSA keys \
            have 2048 to 8192 bits. A reload reads it again.
            """
        ) { section, settings in
            if let path = section.value(.keyFile, as: ValueSyntax<String>.path) { settings.keys = .file(path) }
        },
        .custom(
            .keyURL, .value(ValueSyntax<KeySetURL>.keySetURL),
            """
            Address of a JSON Web Key Set, at most 256 KiB and 64 keys. Fetched at start, every `refresh-interval`, and when a \
            token names an unknown key, for that reason at most every 30 seconds. While the server is away the keys \
            fetched last stay in use; before there are any, requests get 503. Redirections are not followed.
            """
        ) { section, settings in
            if let url = section.value(.keyURL, as: .keySetURL) { settings.keys = .url(url) }
        },
        .value(
            .refreshInterval, \.refreshInterval, .duration(.seconds(10) ... .seconds(7 * 86_400)),
            "Time between two requests for the `key-url`."),
    ]

    private static let claimRules: [SettingsKey<TokenSettings>] = [
        .list(
            "algorithms", \.algorithms, .choice, default: "all that the keys are for", example: "[ES256, EdDSA]",
            "Accepted signature algorithms (RFC 7518 §3.1). A key is never used with an algorithm of another kind of key."
        ),
        .list(
            "audience", \.audiences, ValueSyntax<String>.text, default: "any", example: "[chat.example]",
            "Names of which the token's `aud` must contain one."),
        .optional(
            "issuer", \.issuer, ValueSyntax<String>.text, default: "any", example: "https://issuer.example",
            "The token's `iss`, compared exactly."),
        .value(
            "leeway", \.leeway, .duration(.zero ... .seconds(3600)), example: "10s",
            "Tolerated difference between the clocks of issuer and gateway, in whole seconds, for `exp` and `nbf`."),
        .value(
            "require-expiry", \.requiresExpiry, .boolean, "Whether a token without `exp` is refused."),
        .value(
            "max-size", \.maximumSize, .size(256...TokenVerifier.Rules.largestByteLimit),
            "Largest token. A listener's `max-header-size` limits it too."),
    ]

    private var secret: KeyPassword? {
        get { if case .secret(let secret) = self.keys { secret } else { nil } }
        set { if let newValue { self.keys = .secret(newValue) } }
    }

    mutating func check(_ section: SectionReader<TokenSettings>) {
        // Both keys of the secret together are reported already.
        let secret: TokenSettingsKey = section.has(.secret) ? .secret : .secretFile
        let present = [secret, .keyFile, .keyURL].filter(section.has)
        if present.count != 1 {
            section.add(
                present.last ?? .keyFile, expected: "one of secret, secret-file, key-file and key-url",
                found: present.isEmpty ? "nothing" : nil,
                remedy: present.isEmpty ? "add the one that holds the issuer's keys" : "leave out the others")
        }
        if section.has(.allowShortSecret), !section.has(secret) {
            section.add(
                .allowShortSecret, expected: "no allow-short-secret, as there is no secret", remedy: "leave it out")
        }
        if section.has(.refreshInterval), !section.has(.keyURL) {
            section.add(
                .refreshInterval, expected: "no refresh-interval, as there is no key-url",
                remedy: "leave it out; a reload reads files again")
        }
    }
}

/// Keys of a route's `auth`.
package typealias RouteAuthKey = SettingsKeyName<RouteAuth>

extension RouteAuthKey {
    package static var tokens: Self { "tokens" }
    fileprivate static var query: Self { "query" }
    fileprivate static var cookie: Self { "cookie" }
}

extension RouteAuth: SettingsSection {
    static let sectionName = "RouteAuth"
    static let initial = RouteAuth(tokens: "")
    static let keys: [SettingsKey<RouteAuth>] = [
        .required(.tokens, \.tokens, .name, "Name of the entry of `tokens` that verifies."),
        .orNone(
            .query, \.query, .token, example: "token",
            """
            Query parameter that may hold the token (RFC 6750 §2.3), for browsers, which cannot add fields to a \
            WebSocket's request. It is removed before the query is forwarded or shown.
            """),
        .optional(
            .cookie, \.cookie, .token, example: "session",
            "Cookie that may hold the token. Web pages of all origins send it: restrict `origins`."),
        .value(
            "subprotocol", \.usesSubprotocol, .boolean,
            """
            Whether the token may be offered as a subprotocol behind `bearer`: `new WebSocket(url, ["bearer", token])`. The token \
            is not forwarded; if no other subprotocol is chosen, the client gets `bearer`.
            """),
        .value(
            "close-when-expired", \.closesWhenExpired, .boolean,
            "Whether a connection ends when its token expires: a WebSocket with 1008 and `token expired`."),
    ]
}

extension ValueSyntax<KeySetURL> {
    package static var keySetURL: ValueSyntax {
        ValueSyntax(
            .text(
                "https://issuer.example/.well-known/jwks.json",
                "`https://HOST[:PORT]/PATH`; `http` if HOST is a loopback address or `localhost`")
        ) { text throws(ValueSyntaxError) in try KeySetURL(text) }
    }
}

extension ValueSyntax<String> {
    /// Name of a query parameter or cookie.
    static var token: ValueSyntax {
        ValueSyntax(.text("session", "a name of letters, digits, `-`, `_`, `.` and `~`")) {
            text throws(ValueSyntaxError) in
            // Others may be encoded in several ways in a query.
            guard NameText.isToken(text), text.utf8.allSatisfy(\.isUnreserved) else {
                throw ValueSyntaxError(expected: "a name of letters, digits, -, _, . and ~")
            }
            return text
        }
    }
}
