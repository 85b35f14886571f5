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
