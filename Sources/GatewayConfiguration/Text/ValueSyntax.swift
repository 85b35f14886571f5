import WireText

/// Parses an option's text to a value.
package struct ValueSyntax<Value: Sendable>: Sendable {
    /// Format of the text.
    package let form: ValueFormat
    package let parse: @Sendable (String) throws(ValueSyntaxError) -> Value
    /// Writes a value so that it can be parsed again.
    package private(set) var text: @Sendable (Value) -> String = { "\($0)" }

    package init(
        _ form: ValueFormat = .text("", "text"),
        parse: @escaping @Sendable (String) throws(ValueSyntaxError) -> Value
    ) {
        self.form = form
        self.parse = parse
    }

    /// The same syntax with another way to write values.
    private func writing(_ text: @escaping @Sendable (Value) -> String) -> ValueSyntax {
        var copy = self
        copy.text = text
        return copy
    }

    /// The same syntax, or the word `none` for `nil`.
    package var orNone: ValueSyntax<Value?> {
        ValueSyntax<Value?>(.orNone(self.form)) { text throws(ValueSyntaxError) in
            if text == "none" { return nil }
            do throws(ValueSyntaxError) {
                return try self.parse(text)
            } catch {
                throw ValueSyntaxError(expected: error.expected + ", or none", remedy: error.remedy)
            }
        }.writing { $0.map(self.text) ?? "none" }
    }
}

extension ValueSyntax<String> {
    /// The name of a listener, route or upstream.
    package static var name: ValueSyntax {
        ValueSyntax(.text(example: "web", words: "a name", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")) {
            text throws(ValueSyntaxError) in
            guard NameText.isName(text) else {
                throw ValueSyntaxError(
                    expected: "a name of 1 to 64 letters, digits, -, _ and . that begins with a letter or digit")
            }
            return text
        }
    }

    /// A subprotocol (RFC 6455 §4.1: a token).
    package static var subprotocol: ValueSyntax {
        ValueSyntax(.text("chat.v1", "a subprotocol (RFC 6455)")) { text throws(ValueSyntaxError) in
            guard NameText.isToken(text) else {
                throw ValueSyntaxError(
                    expected: "a subprotocol: letters, digits and !#$%&'*+-.^_`|~", remedy: "list each one separately")
            }
            return text
        }
    }

    /// An application protocol of TLS (RFC 7301): 1 to 255 bytes.
    package static var applicationProtocol: ValueSyntax {
        ValueSyntax(.text("http/1.1", "an application protocol of 1 to 255 bytes")) { text throws(ValueSyntaxError) in
            guard (1...255).contains(text.utf8.count) else {
                throw ValueSyntaxError(expected: "an application protocol of 1 to 255 bytes")
            }
            return text
        }
    }

    /// A host name or an address.
    package static var host: ValueSyntax {
        ValueSyntax(.text("backend.example.com", "a host name or an address")) { text throws(ValueSyntaxError) in
            if let address = AddressText.address(text[...].utf8) { return address.description }
            guard let name = HostText.name(text[...]) else {
                throw ValueSyntaxError(expected: "a host name or an IP address")
            }
            return name
        }
    }

    /// The path of a file.
    package static var path: ValueSyntax {
        ValueSyntax(.text("/etc/sluice/server.pem", "the path of a file")) { text throws(ValueSyntaxError) in
            guard (1...4095).contains(text.utf8.count), !text.utf8.contains(0) else {
                throw ValueSyntaxError(expected: "the path of a file")
            }
            return text
        }
    }

    /// The path of a directory.
    package static var directory: ValueSyntax {
        ValueSyntax(.text("/srv/www", "the path of a directory")) { text throws(ValueSyntaxError) in
            guard (1...4095).contains(text.utf8.count), !text.utf8.contains(0) else {
                throw ValueSyntaxError(expected: "the path of a directory")
            }
            return text
        }
    }

    /// The value of a header field (RFC 9110 §5.5), at most 1024 bytes.
    package static var fieldValue: ValueSyntax {
        ValueSyntax(.text("no-cache", "the value of a header field")) { text throws(ValueSyntaxError) in
            guard (1...1024).contains(text.utf8.count), text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
                text.first != " ", text.last != " "
            else {
                throw ValueSyntaxError(expected: "a header value of at most 1024 visible characters and spaces")
            }
            return text
        }
    }

    /// Any text, also an empty one.
    package static var text: ValueSyntax {
        ValueSyntax(.text("text", "any text")) { text throws(ValueSyntaxError) in text }
    }
}

extension ValueSyntax<HostPattern> {
    /// `example.com`, `*.example.com` or an address.
    package static var hostPattern: ValueSyntax {
        ValueSyntax(.text("*.example.com", "a host name, or `*.` for one label and a host name")) {
            text throws(ValueSyntaxError) in
            let error = ValueSyntaxError(
                expected: "a host name without port, or *. and a host name", remedy: "write it like *.example.com")
            if text.hasPrefix("*.") {
                guard let suffix = HostText.name(text.dropFirst(2)) else { throw error }
                return .wildcard(suffix: suffix)
            }
            let bare = text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...]
            if let address = AddressText.address(bare.utf8) { return .exact(address.description) }
            guard let name = HostText.name(text[...]) else { throw error }
            return .exact(name)
        }
    }
}

extension ValueSyntax<OriginPattern> {
    /// `https://example.com`, `https://*.example.com:8443`, `*` or `null`.
    package static var originPattern: ValueSyntax {
        ValueSyntax(
            .text(
                "https://app.example.com",
                "`SCHEME://HOST[:PORT]`, `*.` in HOST for one label; `*` for all origins; `null` for opaque ones"
            )
        ) { text throws(ValueSyntaxError) in
            if text == "*" { return .any }
            if text == "null" { return .opaque }
            let error = ValueSyntaxError(
                expected: "an origin: scheme, host and port, without a path",
                remedy: "write it like https://app.example.com, \"*\" for all, or \"null\" in quotes for pages "
                    + "without an origin")
            guard text.contains("://") else { throw error }
            let url = try URLText(text)
            guard url.transport.isEmpty, url.resource.isEmpty, NameText.isName(url.scheme),
                let (host, isBracketed, port) = HostText.split(url.authority)
            else { throw error }
            let pattern = try ValueSyntax<HostPattern>.hostPattern.parse(isBracketed ? "[\(host)]" : String(host))
            return OriginPattern(
                scheme: url.scheme, host: pattern, port: port == nil ? nil : try url.port(port, default: nil))
        }
    }
}

extension ValueSyntax<AddressBlock> {
    /// `10.0.0.0/8`, `fd00::/8`, or a single address.
    package static var addressBlock: ValueSyntax {
        ValueSyntax(.text("10.0.0.0/8", "a block of addresses")) { text throws(ValueSyntaxError) in
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, let address = AddressText.address(first.utf8) else {
                throw ValueSyntaxError(
                    expected: "a block of addresses", remedy: "write it like 10.0.0.0/8, fd00::/8 or 192.0.2.7")
            }
            guard parts.count == 2 else { return try Self.block(address, prefixLength: address.bitWidth) }
            guard let length = Decimal.integer(parts[1].utf8), length <= address.bitWidth else {
                throw ValueSyntaxError(expected: "a prefix length from 0 to \(address.bitWidth) after /")
            }
            return try Self.block(address, prefixLength: length)
        }
    }

    private static func block(_ address: IPAddress, prefixLength: Int) throws(ValueSyntaxError) -> AddressBlock {
        guard let block = AddressBlock(address, prefixLength: prefixLength) else {
            throw ValueSyntaxError(
                expected: "a block whose address has no bits after the prefix",
                remedy: "write \(address.prefix(prefixLength))/\(prefixLength)")
        }
        return block
    }
}

extension ValueSyntax<Int> {
    /// Decimal digits.
    package static func integer(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.integer(range)) { text throws(ValueSyntaxError) in
            guard let number = Decimal.integer(text.utf8), range.contains(number) else {
                throw ValueSyntaxError(expected: "a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }

    /// A number of bytes: digits, alone or with `B`, `kB`, `KB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB`
    /// (powers of 1024).
    package static func size(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.size(range)) { text throws(ValueSyntaxError) in
            let expected = "a size from \(SizeText(range.lowerBound)) to \(SizeText(range.upperBound))"
            guard let size = SizeText(parsing: text) else {
                throw ValueSyntaxError(expected: expected, remedy: "write it like 65536, 64KiB, 1MiB or 16MB")
            }
            guard range.contains(size.bytes) else { throw ValueSyntaxError(expected: expected) }
            return size.bytes
        }.writing { "\(SizeText($0))" }
    }

    /// Events per second: `500/s`.
    package static func rate(_ range: ClosedRange<Int>) -> ValueSyntax {
        ValueSyntax(.rate(range)) { text throws(ValueSyntaxError) in
            guard text.hasSuffix("/s"), let number = Decimal.integer(text.utf8.dropLast(2)), range.contains(number)
            else {
                throw ValueSyntaxError(
                    expected: "a rate from \(range.lowerBound)/s to \(range.upperBound)/s",
                    remedy: "write it like 500/s")
            }
            return number
        }.writing { "\($0)/s" }
    }
}

extension ValueSyntax<Duration> {
    /// `25s`, `1m30s`, `500ms`, `1h`, `7d`.
    package static func duration(_ range: ClosedRange<Duration>) -> ValueSyntax {
        ValueSyntax(.duration(range)) { text throws(ValueSyntaxError) in
            let expected =
                "a duration from \(DurationText(range.lowerBound)) to \(DurationText(range.upperBound))"
            guard let duration = DurationText(parsing: text) else {
                let lacksUnit = Decimal.integer(text.utf8) != nil
                throw ValueSyntaxError(
                    expected: expected,
                    remedy: lacksUnit ? "add a unit: \(text)s is seconds" : "write it like 500ms, 25s, 1m30s, 1h or 7d")
            }
            guard range.contains(duration.duration) else { throw ValueSyntaxError(expected: expected) }
            return duration.duration
        }.writing { "\(DurationText($0))" }
    }
}

extension ValueSyntax<UInt32> {
    /// Permission bits in octal: `0660`.
    package static var permissions: ValueSyntax {
        ValueSyntax(.text(example: "0660", words: "permission bits in octal", pattern: "^(0o)?[0-7]{3,4}$")) {
            text throws(ValueSyntaxError) in
            let digits = text.hasPrefix("0o") ? text.dropFirst(2) : text[...]
            guard (3...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
                let bits = UInt32(digits, radix: 8), bits <= 0o777
            else {
                throw ValueSyntaxError(expected: "permission bits in octal, 0000 to 0777", remedy: "write it like 0660")
            }
            return bits
        }
    }
}

extension ValueSyntax<Bool> {
    package static var boolean: ValueSyntax {
        ValueSyntax(.boolean) { text throws(ValueSyntaxError) in
            switch text {
            case "true": return true
            case "false": return false
            default: throw ValueSyntaxError(expected: "true or false")
            }
        }
    }
}

extension ValueSyntax where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// A raw value of an enumeration.
    package static var choice: ValueSyntax {
        ValueSyntax(.choice(Value.allCases.map(\.rawValue))) { text throws(ValueSyntaxError) in
            if let value = Value(rawValue: text) { return value }
            let words = Value.allCases.map(\.rawValue)
            throw ValueSyntaxError(
                expected: "one of " + words.joined(separator: ", "),
                remedy: EditDistance.nearest(to: text, among: words).map { "did you mean \($0)?" } ?? "")
        }.writing { $0.rawValue }
    }
}

extension ValueSyntax<ListenURL> {
    package static var listenURL: ValueSyntax {
        ValueSyntax(.text("wss://0.0.0.0:443", "a URL as in *Where to listen*")) { text throws(ValueSyntaxError) in
            try ListenURL(text)
        }
    }
}

extension ValueSyntax<EndpointURL> {
    package static var endpointURL: ValueSyntax {
        ValueSyntax(.text("tcp://10.0.0.5:5900", "a URL as in *Where to connect*")) { text throws(ValueSyntaxError) in
            try EndpointURL(text)
        }
    }
}

extension ValueSyntax<PathPattern> {
    package static var pathPattern: ValueSyntax {
        ValueSyntax(
            .text(
                "/chat/{room}",
                "a path of literal segments, `{parameter}`, and `{rest...}` at the end; at most 1024 bytes")
        ) { text throws(ValueSyntaxError) in try PathPattern(parsing: text) }
    }
}

extension ValueSyntax<RouteTarget> {
    /// `echo`, `chat`, `page`, a URL, or the name of an upstream.
    package static var routeTarget: ValueSyntax {
        ValueSyntax(
            .text(
                "backend", "the name of an upstream, a URL as in *Where to connect*, `echo`, `chat`, `rooms` or `page`")
        ) { text throws(ValueSyntaxError) in
            if text == "echo" { return .echo }
            if text == "chat" { return .chat }
            if text == "rooms" { return .rooms }
            if text == "room-events" { return .roomEvents }
            if text == "page" { return .page }
            if text.contains("://") { return .url(try EndpointURL(text)) }
            guard NameText.isName(text) else {
                throw ValueSyntaxError(
                    expected: "echo, chat, rooms, a URL, or the name of an upstream",
                    remedy: "write a URL like tcp://127.0.0.1:5900")
            }
            return .upstream(text)
        }
    }
}

extension ValueSyntax<PublicKeyPin> {
    /// `sha256/` and 44 characters of base64, or 64 hexadecimal digits.
    package static var publicKeyPin: ValueSyntax {
        ValueSyntax(
            .text(
                "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "`sha256/` and base64, or 64 hexadecimal digits")
        ) { text throws(ValueSyntaxError) in
            let digest = text.hasPrefix("sha256/") ? Base64.decoded(text.dropFirst(7).utf8) : Hexadecimal.bytes(text)
            guard let digest, let pin = PublicKeyPin(digest: digest) else {
                throw ValueSyntaxError(
                    expected: "the SHA-256 of a public key",
                    remedy: "write sha256/ and its base64, or its 64 hexadecimal digits")
            }
            return pin
        }
    }
}

/// Format of an option's text, for schemas.
package indirect enum ValueFormat: Sendable, Hashable {
    /// - Parameters:
    ///   - words: the syntax in Markdown.
    ///   - pattern: a regular expression (ECMA-262) that every valid value matches.
    case text(example: String, words: String, pattern: String?)
    case integer(ClosedRange<Int>)
    /// A number of bytes, with or without a unit.
    case size(ClosedRange<Int>)
    /// Events per second.
    case rate(ClosedRange<Int>)
    case duration(ClosedRange<Duration>)
    case boolean
    case choice([String])
    /// Another format, or the word `none`.
    case orNone(ValueFormat)

    /// Whether the value is the path of a file.
    package var isPath: Bool { self == ValueSyntax<String>.path.form }

    /// Whether the value is the path of a directory.
    package var isDirectory: Bool { self == ValueSyntax<String>.directory.form }

    static func text(_ example: String, _ words: String) -> ValueFormat {
        .text(example: example, words: words, pattern: nil)
    }
}

/// Why a text could not be parsed.
package struct ValueSyntaxError: Error, Equatable, Sendable {
    /// To be read after "expected".
    package let expected: String
    /// What to do, a sentence without its full stop; empty if `expected` says it.
    package let remedy: String

    package init(expected: String, remedy: String = "") {
        self.expected = expected
        self.remedy = remedy
    }
}

/// Finds the known word that a misspelt one probably means.
package enum EditDistance {
    /// - Returns: the first candidate with the smallest edit distance to `word` (insertions, deletions, replacements,
    ///   swaps of neighbours), if that is at most 3 and a third of its length; else the shortest one that begins with
    ///   `word`, if that has at least three letters.
    package static func nearest(to word: String, among candidates: [String]) -> String? {
        let letters = Array(word.lowercased().utf8.prefix(64))
        var best: (distance: Int, word: String)?
        for candidate in candidates {
            let distance = Self.distance(letters, Array(candidate.utf8))
            let limit = min(3, max(1, candidate.utf8.count / 3))
            if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
        }
        if let best { return best.word }
        guard letters.count >= 3 else { return nil }
        return candidates.filter { $0.utf8.starts(with: letters) }.min { $0.utf8.count < $1.utf8.count }
    }

    /// Optimal string alignment distance, computed row by row.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
        var older: [Int] = []
        var previous = Array(0...b.count)
        for i in 1...a.count {
            var row = [i]
            for j in 1...b.count {
                let replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                var cost = min(previous[j] + 1, row[j - 1] + 1, replaced)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { cost = min(cost, older[j - 2] + 1) }
                row.append(cost)
            }
            older = previous
            previous = row
        }
        return previous[b.count]
    }
}
