/// `Content-Type` (RFC 9110 §8.3).
package struct ContentType: Equatable, Sendable {
    /// Longer text is not read.
    package static let limit = 8192

    /// `type/subtype` in lower case.
    package let mediaType: String
    private let parameters: [FieldParameter]

    /// - Returns: `nil` where no `type/subtype` stands at the beginning.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.limit else { return nil }
        var scanner = FieldScanner(text)
        scanner.skipBlanks()
        guard let type = scanner.token(), scanner.skip(UInt8(ascii: "/")), let subtype = scanner.token() else {
            return nil
        }
        self.mediaType = "\(type)/\(subtype)".loweredASCII
        self.parameters = FieldParameter.list(&scanner)
    }

    /// The first of that name, as it came.
    package func parameter(_ name: String) -> String? {
        self.parameters.first { $0.name == name.loweredASCII }?.value
    }

    /// The name of the text's encoding, in lower case.
    package var charset: String? { self.parameter("charset").flatMap { $0.isEmpty ? nil : $0.loweredASCII } }

    /// What parts a content of several parts.
    package var boundary: String? { self.parameter("boundary").flatMap { $0.isEmpty ? nil : $0 } }
}
