import WireText

/// An interpreted `Set-Cookie` field (RFC 6265bis §5.6.1 to §5.6.7). `CookieJar` decides whether to store it.
package struct SetCookie: Equatable, Sendable {
    /// The interpretation of attributes where implementations differ.
    package enum Dialect: Sendable {
        /// RFC 6265bis.
        case standard
        /// Foundation's for header fields in a dictionary: `Discard` makes a session cookie.
        case foundation
    }

    package var name: String
    package var value: String
    /// In canonical form; `nil` for a host-only cookie.
    package var domain: String?
    /// Whether the Domain attribute begins with two dots or ends with one: no host belongs to such a domain.
    package private(set) var isDomainInvalid = false
    /// `nil` for the default path.
    package var path: String?
    /// `nil` for a session cookie.
    package var expires: HTTPDate?
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    package var sameSite: SameSite

    package init(
        name: String, value: String, domain: String? = nil, path: String? = nil, expires: HTTPDate? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified
    ) {
        self.name = name
        self.value = value
        self.domain = domain.map(CookieDomain.canonical)
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
    }

    /// - Parameter now: the time that Max-Age is added to.
    package init(_ field: SetCookieField, dialect: Dialect = .standard, now: HTTPDate) {
        var given = field.attribute("Domain")?.value ?? ""
        if given.hasPrefix(".") { given.removeFirst() }
        let domain = CookieDomain.canonical(given)
        let path = field.attribute("Path")?.value ?? ""
        self.init(
            name: field.name, value: field.value, domain: domain.isEmpty ? nil : domain,
            path: path.utf8.first == UInt8(ascii: "/") ? path : nil, expires: Self.expiry(field, now: now),
            isSecure: field.attribute("Secure") != nil, isHTTPOnly: field.attribute("HttpOnly") != nil,
            sameSite: SameSite(attribute: field.attribute("SameSite")?.value))
        self.isDomainInvalid = given.hasPrefix(".") || given.hasSuffix(".")
        let isDiscarded = field.attributes.contains { $0.value == nil && $0.name.matchesIgnoringCase("Discard") }
        if dialect == .foundation, isDiscarded { self.expires = nil }
    }

    /// Max-Age takes precedence over Expires; of each, the last valid one is used.
    private static func expiry(_ field: SetCookieField, now: HTTPDate) -> HTTPDate? {
        var byAge: HTTPDate?
        var byDate: HTTPDate?
        for attribute in field.attributes {
            guard let value = attribute.value else { continue }
            if attribute.name.matchesIgnoringCase("Max-Age") {
                byAge = self.maximumAge(value).map { $0 <= 0 ? .earliest : now.advanced(by: $0) } ?? byAge
            } else if attribute.name.matchesIgnoringCase("Expires") {
                byDate = CookieDate.parse(value) ?? byDate
            }
        }
        return byAge ?? byDate
    }

    private static func maximumAge(_ value: String) -> Int64? {
        let isNegative = value.utf8.first == UInt8(ascii: "-")
        guard let age = value.dropFirst(isNegative ? 1 : 0).clampedDecimal(limit: Int64(UInt32.max)) else { return nil }
        return isNegative ? -age : age
    }
}

/// A parsed `Set-Cookie` field with uninterpreted attributes (RFC 6265bis §5.6).
package struct SetCookieField: Equatable, Sendable {
    package struct Attribute: Equatable, Sendable {
        /// As received; compare without regard to case.
        package let name: String
        /// `nil` without an equals sign.
        package let value: String?
    }

    /// Most bytes of name and value together.
    package static let nameAndValueLimit = 4096
    /// Most bytes of an attribute's value; an attribute with a longer one is ignored.
    private static let attributeLimit = 1024
    /// Most attributes; further ones are ignored.
    package static let attributeCountLimit = 64

    /// Empty without an equals sign, or with nothing before it: the RFC stores such a cookie, Foundation does not.
    package let name: String
    package let value: String
    /// In the order received, without nameless ones.
    package let attributes: [Attribute]

    /// - Returns: `nil` for a field that must be ignored: with control characters, too long, or with empty name and
    ///   value.
    package init?(_ text: String) {
        let bytes = Self.trimmed(Array(text.utf8)[...])
        guard !bytes.contains(where: \.isControl) else { return nil }
        let pieces = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let first = pieces.first else { return nil }
        let pair = Self.pair(first)
        self.name = pair.value == nil ? "" : pair.name
        self.value = pair.value ?? pair.name
        let size = self.name.utf8.count + self.value.utf8.count
        guard size > 0, size <= Self.nameAndValueLimit else { return nil }
        self.attributes = pieces.dropFirst().prefix(Self.attributeCountLimit).compactMap { piece in
            let pair = Self.pair(piece)
            guard !pair.name.isEmpty, pair.value?.utf8.count ?? 0 <= Self.attributeLimit else { return nil }
            return Attribute(name: pair.name, value: pair.value)
        }
    }

    /// The last attribute of that name, which takes precedence (RFC 6265bis §5.7).
    package func attribute(_ name: String) -> Attribute? {
        self.attributes.last { $0.name.matchesIgnoringCase(name) }
    }

    private static func pair(_ bytes: ArraySlice<UInt8>) -> (name: String, value: String?) {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { return (self.text(bytes), nil) }
        return (self.text(bytes[..<equals]), self.text(bytes[(equals + 1)...]))
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: self.trimmed(bytes), as: UTF8.self)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let rest = bytes.drop(while: \.isBlank)
        guard let last = rest.lastIndex(where: { !$0.isBlank }) else { return rest }
        return rest[...last]
    }

    /// Most cookies in one text; further ones are ignored.
    package static let joinedLimit = 256

    /// Parses several cookies joined by commas, as in a dictionary of header fields.
    ///
    /// A comma separates cookies if a token and an equals sign follow, unlike the comma of a date. This is a heuristic:
    /// parse separate field lines one by one instead.
    package static func parseJoined(_ text: String) -> [Self] {
        let bytes = Array(text.utf8)
        var fields: [Self] = []
        var start = 0
        for index in bytes.indices where fields.count < self.joinedLimit {
            let isEnd = index == bytes.count - 1
            guard isEnd || bytes[index] == UInt8(ascii: ",") && self.beginsCookie(bytes[(index + 1)...]) else {
                continue
            }
            let piece = bytes[start..<(isEnd ? bytes.count : index)]
            if let field = Self(self.withoutLineEnds(piece)) { fields.append(field) }
            start = index + 1
        }
        return fields
    }

    /// Whether `bytes` begin with a name and an equals sign.
    private static func beginsCookie(_ bytes: ArraySlice<UInt8>) -> Bool {
        let rest = bytes.drop { $0.isBlank || $0 == 0x0A || $0 == 0x0D }
        let name = rest.prefix(while: \.isTokenCharacter)
        let remainder = rest.dropFirst(name.count).drop(while: \.isBlank)
        return !name.isEmpty && remainder.first == UInt8(ascii: "=")
    }

    private static func withoutLineEnds(_ bytes: ArraySlice<UInt8>) -> String {
        let isBlank = { (byte: UInt8) in byte.isBlank || byte == 0x0A || byte == 0x0D }
        let end = bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? bytes.startIndex
        return String(decoding: bytes[..<end].drop(while: isBlank), as: UTF8.self)
    }
}

/// The `Cookie` field of a request (RFC 6265bis §4.2, §5.8.3).
package enum CookieField {
    /// The field's value, in the order of `cookies`; `nil` when there are none.
    package static func rendered(_ cookies: [Cookie]) -> String? {
        self.rendered(cookies.map { ($0.name, $0.value) })
    }

    /// The field's value for names with their values. A pair with a semicolon or a control character, which could
    /// inject another cookie or field, is left out.
    package static func rendered(_ pairs: [(String, String)]) -> String? {
        var value: [UInt8] = []
        for (name, content) in pairs where !self.isForbidden(name) && !self.isForbidden(content) {
            if !value.isEmpty { value += [UInt8(ascii: ";"), UInt8(ascii: " ")] }
            if !name.isEmpty {
                value += name.utf8
                value.append(UInt8(ascii: "="))
            }
            value += content.utf8
        }
        return value.isEmpty ? nil : String(decoding: value, as: UTF8.self)
    }

    private static func isForbidden(_ text: String) -> Bool {
        text.utf8.contains { $0.isControl || $0 == UInt8(ascii: ";") }
    }
}
