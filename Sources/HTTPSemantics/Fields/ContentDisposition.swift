/// `Content-Disposition` (RFC 6266).
package struct ContentDisposition: Equatable, Sendable {
    /// Longer text is not read.
    package static let limit = 8192

    /// In lower case: `attachment`, `inline`, or another.
    package let kind: String
    /// As the server meant it; not yet fit for a disk.
    package let filename: String?

    /// - Returns: `nil` where no kind stands at the beginning.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.limit else { return nil }
        var scanner = FieldScanner(text)
        scanner.skipBlanks()
        guard let kind = scanner.token() else { return nil }
        self.kind = kind.loweredASCII
        let parameters = FieldParameter.list(&scanner)
        // The extended form goes first, wherever it stands (§4.3).
        let extended = parameters.first { $0.name == "filename*" }.flatMap { ExtendedValue.decoded($0.value) }
        self.filename = extended ?? parameters.first { $0.name == "filename" }?.value
    }
}

/// Values of parameters beyond ASCII, as in `filename*=UTF-8''na%C3%AFve.txt` (RFC 8187).
enum ExtendedValue {
    /// - Returns: `nil` for what is no such value, and for an encoding other than UTF-8 and ISO-8859-1.
    static func decoded(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].utf8.allSatisfy({ self.isAttributeCharacter($0) || $0 == UInt8(ascii: "%") })
        else {
            return nil
        }
        let bytes = PercentCoding.decoded(parts[2].utf8)
        if parts[0].matchesIgnoringCase("UTF-8") { return String(validating: bytes, as: UTF8.self) }
        guard parts[0].matchesIgnoringCase("ISO-8859-1") else { return nil }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// `attr-char`: what stands for itself.
    static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        byte.isTokenCharacter && !"*'%".utf8.contains(byte)
    }
}

/// The name under which a response may be saved.
package enum SuggestedFilename {
    /// What a response without a name is called.
    package static let unknown = "Unknown"
    /// Octets that a name may have: what file systems take.
    package static let limit = 255

    /// From the response's own wish, or else from its URL.
    /// - Parameters:
    ///   - disposition: the value of `Content-Disposition`.
    ///   - path: of the URL, percent-encoded.
    package static func choose(disposition: String?, path: String) -> String {
        if let wish = disposition.flatMap({ ContentDisposition($0)?.filename }), let name = self.sanitized(wish) {
            return name
        }
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last ?? Substring("").utf8[...]
        return self.sanitized(String(decoding: PercentCoding.decoded(last), as: UTF8.self)) ?? self.unknown
    }

    /// `name` made fit for a disk: no slash, nothing that cannot be printed, no special folder, not too long.
    /// - Returns: `nil` when nothing is left.
    package static func sanitized(_ name: String) -> String? {
        let scalars = name.unicodeScalars.compactMap { scalar -> Unicode.Scalar? in
            if scalar == "/" { return "_" }
            return self.isHidden(scalar) ? nil : scalar
        }
        let clean = String(String.UnicodeScalarView(scalars)).trimmingBlanks
        guard clean != ".", clean != "..", clean.unicodeScalars.contains(where: self.isSeen) else { return nil }
        return self.shortened(clean)
    }

    /// Controls, and the marks that turn the direction of writing: by them a name shows another extension than it has.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    private static func isSeen(_ scalar: Unicode.Scalar) -> Bool {
        !scalar.properties.isWhitespace && !scalar.properties.isDefaultIgnorableCodePoint
    }

    /// Cut in the middle, so that the extension stays.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > self.limit else { return name }
        let dot = name.lastIndex(of: ".")
        let end = dot.map { name[$0...] } ?? ""
        let tail = end.utf8.count <= 32 ? end : ""
        var head = name.dropLast(tail.count)
        while head.utf8.count + tail.utf8.count > self.limit, head.count > 1 { head.removeLast() }
        // A letter with hundreds of accents is one character.
        while head.utf8.count + tail.utf8.count > self.limit { head.unicodeScalars.removeLast() }
        return String(head) + tail
    }
}
