import WireText

/// One challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3).
package struct Challenge: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        /// As received; compare without regard to case.
        package let name: String
        /// Without quotes and escapes.
        package let value: String
    }

    /// As received.
    package let schemeName: String
    /// The token68 that Negotiate and NTLM use instead of parameters.
    package let token68: String?
    package let parameters: [Parameter]

    package var scheme: AuthenticationScheme { AuthenticationScheme(name: self.schemeName) }

    package var realm: String? { self.parameter("realm") }

    /// The first parameter of that name; parameters must not be repeated.
    package func parameter(_ name: String) -> String? {
        self.parameters.first { $0.name.matchesIgnoringCase(name) }?.value
    }

    /// Longest line in bytes, most challenges in all, and most parameters of one challenge.
    package static let lineLimit = 65_536
    package static let countLimit = 32
    package static let parameterLimit = 64
    /// Longest value of a parameter in bytes; longer ones are left out. Comparing realms takes time that grows with the
    /// square of their combining characters.
    package static let valueLimit = 4096

    /// The challenges of all lines of one field, in order (RFC 9110 §11.6.1).
    ///
    /// Commas separate both challenges and parameters, so the token after a word decides which it is. A malformed
    /// element is skipped up to the next comma.
    package static func parse(_ lines: [String]) -> [Self] {
        var challenges: [Self] = []
        for line in lines where line.utf8.count <= self.lineLimit {
            var reading = ChallengeParser(line)
            challenges += reading.parse(limit: self.countLimit - challenges.count)
        }
        return challenges
    }

    /// The answerable challenges of the given schemes, the strongest scheme first; within a scheme in the server's
    /// order of preference (RFC 7616 §3.7). A caller that rejects one tries the next.
    package static func ranked(_ challenges: [Self], supporting schemes: Set<AuthenticationScheme>) -> [Self] {
        challenges.filter { schemes.contains($0.scheme) && $0.isAnswerable }
            .sorted { $0.scheme.strength > $1.scheme.strength }
    }

    /// The challenges of all supported schemes, in the order of `ranked`.
    package static func answerable(in lines: [String]) -> [Self] {
        self.ranked(self.parse(lines), supporting: [.basic, .digest, .ntlm, .negotiate])
    }

    private var isAnswerable: Bool {
        switch self.scheme {
        case .basic: self.realm != nil
        case .digest: DigestChallenge(self) != nil
        case .ntlm, .negotiate, .other: true
        }
    }
}

/// Parses one line of challenges.
private struct ChallengeParser {
    private var scanner: FieldValueScanner
    private var finished: [Challenge] = []
    private var schemeName: String?
    private var token68: String?
    private var parameters: [Challenge.Parameter] = []

    init(_ line: String) {
        self.scanner = FieldValueScanner(line)
    }

    mutating func parse(limit: Int) -> [Challenge] {
        while !self.scanner.isAtEnd, self.finished.count < limit {
            self.scanner.skipWhitespace()
            if self.scanner.skip(",") { continue }
            self.readElement()
            // Skips the malformed rest of the element.
            self.scanner.skip(to: ",")
        }
        self.finish()
        return Array(self.finished.prefix(max(0, limit)))
    }

    private mutating func readElement() {
        if self.readParameter() { return }
        guard let scheme = self.scanner.token() else { return }
        self.finish()
        self.schemeName = scheme
        guard self.scanner.current?.isBlank == true else { return }
        self.scanner.skipWhitespace()
        if self.readParameter() { return }
        self.readToken68()
    }

    /// Reads `name = value`; leaves the position unchanged if there is none.
    private mutating func readParameter() -> Bool {
        let start = self.scanner.offset
        guard let name = self.scanner.token() else { return false }
        self.scanner.skipWhitespace()
        guard self.scanner.skip("=") else {
            self.scanner.rewind(to: start)
            return false
        }
        self.scanner.skipWhitespace()
        if let value = self.scanner.quotedString() {
            self.add(name, value)
            return true
        }
        // Some servers send nonces with slashes and equals signs unquoted.
        let value = self.scanner.text { !$0.isBlank && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "\"") }
        if value.isEmpty || value.utf8.allSatisfy({ $0 == UInt8(ascii: "=") }) {
            self.scanner.rewind(to: start)
            return false
        }
        self.add(name, value)
        return true
    }

    private mutating func readToken68() {
        let text = self.scanner.text { byte in
            byte.isLetter || byte.isDigit || "-._~+/=".utf8.contains(byte)
        }
        self.scanner.skipWhitespace()
        guard !text.isEmpty, self.scanner.isAtEnd || self.scanner.current == UInt8(ascii: ",") else { return }
        self.token68 = text
    }

    private mutating func add(_ name: String, _ value: String) {
        guard self.schemeName != nil, self.parameters.count < Challenge.parameterLimit,
            value.utf8.count <= Challenge.valueLimit
        else { return }
        self.parameters.append(Challenge.Parameter(name: name, value: value))
    }

    private mutating func finish() {
        if let schemeName = self.schemeName {
            self.finished.append(Challenge(schemeName: schemeName, token68: self.token68, parameters: self.parameters))
        }
        self.schemeName = nil
        self.token68 = nil
        self.parameters = []
    }
}

/// An authentication scheme (RFC 9110 §11.1).
package enum AuthenticationScheme: Hashable, Sendable {
    case basic
    case digest
    case ntlm
    case negotiate
    /// Any other, in lower case.
    case other(String)

    package init(name: String) {
        self =
            switch name.loweredASCII {
            case "basic": .basic
            case "digest": .digest
            case "ntlm": .ntlm
            case "negotiate": .negotiate
            case let name: .other(name)
            }
    }

    /// Ranking of the schemes: a higher one discloses less of the secret.
    fileprivate var strength: Int {
        switch self {
        case .negotiate: 4
        case .ntlm: 3
        case .digest: 2
        case .basic: 1
        case .other: 0
        }
    }
}

/// The paths of an origin for which credentials may be sent preemptively.
package struct ProtectionScope: Equatable, Sendable {
    /// Path prefixes; empty for the whole origin.
    private let prefixes: [String]

    /// For Basic: the directory of `path` and everything below it (RFC 7617 §2.2).
    /// - Parameter path: of the challenged request, without query.
    package init(basicChallengedAt path: String) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        self.prefixes = [slash.map { String(path[...$0]) } ?? "/"]
    }

    /// For Digest: the prefixes given by the server, or the whole origin without any (RFC 7616 §3.3).
    /// - Parameter paths: the resolved references of the challenge's `domain` that belong to this origin.
    package init(digestDomain paths: [String]) {
        self.prefixes = paths
    }

    /// - Parameter path: of another request to the same origin.
    package func covers(_ path: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        return self.prefixes.isEmpty || self.prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}

/// Basic credentials (RFC 7617).
package enum BasicCredentials {
    /// The value of `Authorization` or `Proxy-Authorization`; user and password are encoded as UTF-8.
    /// - Returns: `nil` for a colon in the user name, or a control character in either (§2).
    package static func fieldValue(user: String, password: String) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 || byte == 0x7F }
        guard !user.utf8.contains(UInt8(ascii: ":")), !user.utf8.contains(where: isControl),
            !password.utf8.contains(where: isControl)
        else { return nil }
        return "Basic " + Base64.encoded(Array(user.utf8) + [UInt8(ascii: ":")] + Array(password.utf8))
    }
}
