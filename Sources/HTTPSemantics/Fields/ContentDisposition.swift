import WireText

/// `Content-Disposition` (RFC 6266).
package struct ContentDisposition: Equatable, Sendable {
    /// Longest value in bytes.
    package static let limit = 8192

    /// The disposition type in lower case: `attachment`, `inline`, or another.
    package let kind: String
    /// As received; not yet safe for a file system, see `SuggestedFilename`.
    package let filename: String?

    /// - Returns: `nil` without a disposition type.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.limit else { return nil }
        var scanner = FieldValueScanner(text)
        scanner.skipWhitespace()
        guard let kind = scanner.token() else { return nil }
        self.kind = kind.loweredASCII
        let parameters = FieldParameter.list(&scanner)
        // The extended form takes precedence, wherever it occurs (§4.3).
        let extended = parameters.first { $0.name == "filename*" }.flatMap { ExtendedValue.decoded($0.value) }
        self.filename = extended ?? parameters.first { $0.name == "filename" }?.value
    }
}

/// Extended parameter values, as in `filename*=UTF-8''na%C3%AFve.txt` (RFC 8187).
enum ExtendedValue {
    /// - Returns: `nil` for a malformed value, and for a charset other than UTF-8 and ISO-8859-1.
    static func decoded(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].utf8.allSatisfy({ self.isAttributeCharacter($0) || $0 == UInt8(ascii: "%") }),
            let bytes = PercentCoding.strictlyDecoded(parts[2].utf8)
        else { return nil }
        if parts[0].matchesIgnoringCase("UTF-8") { return String(validating: bytes, as: UTF8.self) }
        guard parts[0].matchesIgnoringCase("ISO-8859-1") else { return nil }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// `attr-char`: characters that are not percent-encoded.
    static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        byte.isTokenCharacter && !"*'%".utf8.contains(byte)
    }
}

/// The file name for saving a response.
package enum SuggestedFilename {
    /// The name of a response without one.
    package static let unknown = "Unknown"
    /// Longest name in bytes, the limit of common file systems.
    package static let limit = 255

    /// The name in `Content-Disposition`, or else the last component of the URL's path.
    /// - Parameters:
    ///   - disposition: the value of `Content-Disposition`.
    ///   - path: of the URL, percent-encoded.
    package static func choose(disposition: String?, path: String) -> String {
        if let suggested = disposition.flatMap({ ContentDisposition($0)?.filename }),
            let name = self.sanitized(suggested)
        {
            return name
        }
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last ?? Substring("").utf8[...]
        return self.sanitized(String(decoding: PercentCoding.decoded(last), as: UTF8.self)) ?? self.unknown
    }

    /// `name` without slashes and unprintable characters, shortened to the limit.
    /// - Returns: `nil` for `.` and `..`, and if no visible character is left.
    package static func sanitized(_ name: String) -> String? {
        let scalars = name.unicodeScalars.compactMap { scalar -> Unicode.Scalar? in
            if scalar == "/" { return "_" }
            return self.isHidden(scalar) ? nil : scalar
        }
        let clean = String(String.UnicodeScalarView(scalars)).trimmingBlanks
        guard clean != ".", clean != "..", clean.unicodeScalars.contains(where: self.isVisible) else { return nil }
        return self.shortened(clean)
    }

    /// Control characters, separators of lines, characters without width, tags, and bidirectional formatting characters,
    /// which can disguise the extension. Joiners remain: scripts and pictographs need them.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x61C, 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF,
            0xE0000...0xE007F:
            true
        default: false
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        !scalar.properties.isWhitespace && !scalar.properties.isDefaultIgnorableCodePoint
    }

    /// Shortened before the extension.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > self.limit else { return name }
        let dot = name.lastIndex(of: ".")
        let end = dot.map { name[$0...] } ?? ""
        let tail = end.utf8.count <= 32 ? end : ""
        var head = name.dropLast(tail.count)
        while head.utf8.count + tail.utf8.count > self.limit, head.count > 1 { head.removeLast() }
        // A single character may have hundreds of combining marks.
        while head.utf8.count + tail.utf8.count > self.limit { head.unicodeScalars.removeLast() }
        return String(head) + tail
    }
}
