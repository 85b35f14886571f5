/// One challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3).
package struct Challenge: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        /// As it came; names are told apart without regard to case.
        package let name: String
        /// Its quotes and escapes undone.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// As it came.
    package let schemeName: String
    /// What stands in the place of parameters, as Negotiate and NTLM have it.
    package let token68: String?
    package let parameters: [Parameter]

    package init(schemeName: String, token68: String? = nil, parameters: [Parameter] = []) {
        self.schemeName = schemeName
        self.token68 = token68
        self.parameters = parameters
    }

    package var scheme: AuthenticationScheme { AuthenticationScheme(name: self.schemeName) }

    package var realm: String? { self.parameter("realm") }

    /// The first of that name; a parameter may come only once.
    package func parameter(_ name: String) -> String? {
        self.parameters.first { $0.name.matchesIgnoringCase(name) }?.value
    }
}

extension Challenge {
    /// Octets of one line that are read, challenges in all, and parameters of one challenge.
    package static let lineLimit = 65_536
    package static let countLimit = 32
    package static let parameterLimit = 64

    /// The challenges of all the lines of one field, in their order (RFC 9110 §11.6.1).
    ///
    /// Commas part both challenges and parameters, so that what follows a word decides what it is. What cannot be
    /// understood is stepped over up to the next comma, and takes nothing with it that could be.
    package static func parse(_ lines: [String]) -> [Self] {
        var challenges: [Self] = []
        for line in lines where line.utf8.count <= self.lineLimit {
            var reading = ChallengeParser(line)
            challenges += reading.parse(limit: self.countLimit - challenges.count)
        }
        return challenges
    }

    /// Those whose scheme is among `schemes`, and that can be answered, the strongest first; of equal ones the server's
    /// order holds, which is how it tells what it prefers (RFC 7616 §3.7).
    ///
    /// Whoever turns one down goes on to the next.
    package static func ranked(_ challenges: [Self], supporting schemes: Set<AuthenticationScheme>) -> [Self] {
        challenges.filter { schemes.contains($0.scheme) && $0.isAnswerable }
            .sorted { $0.scheme.strength > $1.scheme.strength }
    }

    /// Those that are answered here; where there is none, those that are known by name alone, so that a credential for
    /// them can be refused with a word.
    package static func answerable(in lines: [String]) -> [Self] {
        let all = self.parse(lines)
        let answered = self.ranked(all, supporting: [.basic, .digest])
        return answered.isEmpty ? self.ranked(all, supporting: [.ntlm, .negotiate]) : answered
    }

    private var isAnswerable: Bool {
        switch self.scheme {
        case .basic: self.realm != nil
        case .digest: DigestChallenge(self) != nil
        case .ntlm, .negotiate, .other: true
        }
    }
}

/// Reads one line of challenges from its beginning to its end.
struct ChallengeParser {
    private var scanner: FieldScanner
    private var finished: [Challenge] = []
    private var schemeName: String?
    private var token68: String?
    private var parameters: [Challenge.Parameter] = []

    init(_ line: String) {
        self.scanner = FieldScanner(line)
    }

    mutating func parse(limit: Int) -> [Challenge] {
        while !self.scanner.isAtEnd, self.finished.count < limit {
            self.scanner.skipBlanks()
            if self.scanner.skip(UInt8(ascii: ",")) { continue }
            self.readElement()
            // Whatever is left of this element means nothing.
            self.scanner.skip(to: UInt8(ascii: ","))
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
        self.scanner.skipBlanks()
        if self.readParameter() { return }
        self.readToken68()
    }

    /// `name = value`, where a token and one equals sign stand, and something behind it.
    private mutating func readParameter() -> Bool {
        let start = self.scanner.position
        guard let name = self.scanner.token() else { return false }
        self.scanner.skipBlanks()
        guard self.scanner.skip(UInt8(ascii: "=")) else {
            self.scanner.rewind(to: start)
            return false
        }
        self.scanner.skipBlanks()
        if let value = self.scanner.quotedString() {
            self.add(name, value)
            return true
        }
        // A bare value may hold what a token may not: nonces come unquoted, with slashes and equals signs.
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
        self.scanner.skipBlanks()
        guard !text.isEmpty, self.scanner.isAtEnd || self.scanner.current == UInt8(ascii: ",") else { return }
        self.token68 = text
    }

    private mutating func add(_ name: String, _ value: String) {
        guard self.schemeName != nil, self.parameters.count < Challenge.parameterLimit else { return }
        self.parameters.append(Challenge.Parameter(name: name, value: value))
    }

    private mutating func finish() {
        if let schemeName = self.schemeName {
            self.finished.append(
                Challenge(schemeName: schemeName, token68: self.token68, parameters: self.parameters))
        }
        self.schemeName = nil
        self.token68 = nil
        self.parameters = []
    }
}

/// The schemes of authentication that are told apart here (RFC 9110 §11.1).
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

    /// The higher, the less it gives away.
    var strength: Int {
        switch self {
        case .negotiate: 4
        case .ntlm: 3
        case .digest: 2
        case .basic: 1
        case .other: 0
        }
    }
}

/// For which paths an answer may be sent before it is asked for.
package struct ProtectionScope: Equatable, Sendable {
    /// Prefixes of paths; empty for all of the origin.
    private let prefixes: [String]

    /// All at the depth of `path` and below: RFC 7617 §2.2 for Basic.
    /// - Parameter path: of the request that was challenged, without its query.
    package init(basicChallengedAt path: String) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        self.prefixes = [slash.map { String(path[...$0]) } ?? "/"]
    }

    /// The prefixes that the server named; none mean all of its origin: RFC 7616 §3.3 for Digest.
    /// - Parameter paths: of the challenge's `domain` once its references are resolved, those of this origin.
    package init(digestDomain paths: [String]) {
        self.prefixes = paths
    }

    /// - Parameter path: of another request to the same origin.
    package func covers(_ path: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        return self.prefixes.isEmpty || self.prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}

/// The answer to a Basic challenge (RFC 7617).
package enum BasicCredentials {
    /// The value of `Authorization` or `Proxy-Authorization`; the name and the password go as UTF-8.
    /// - Returns: `nil` for what Basic cannot say: a colon in the name, control characters anywhere (§2).
    package static func fieldValue(user: String, password: String) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 || byte == 0x7F }
        guard !user.utf8.contains(UInt8(ascii: ":")), !user.utf8.contains(where: isControl),
            !password.utf8.contains(where: isControl)
        else { return nil }
        return "Basic " + Base64.encoded(Array(user.utf8) + [UInt8(ascii: ":")] + Array(password.utf8))
    }
}
