import HTTPTypes
import WireText

/// A content coding (RFC 9110 §8.4.1).
package enum ContentCoding: Equatable, Sendable {
    case gzip
    case deflate
    case brotli
    case zstandard
    /// An unknown coding, in lower case; empty if the name is no token.
    case other(String)

    /// Most codings applied to one content; no legitimate response has more.
    package static let limit = 4

    /// The codings in the order in which they were applied, without `identity`.
    /// - Returns: `nil` beyond the limit.
    package static func list(_ fields: HTTPFields) -> [Self]? {
        // Comparing other texts than tokens may take long, and they name no coding.
        let codings = FieldList.elements(fields[values: .contentEncoding]).map { $0.isToken ? $0.loweredASCII : "" }
            .filter { $0 != "identity" }
        guard codings.count <= self.limit else { return nil }
        return codings.map { name in
            switch name {
            case "gzip", "x-gzip": .gzip
            case "deflate": .deflate
            case "br": .brotli
            case "zstd": .zstandard
            default: .other(name)
            }
        }
    }
}

/// `Content-Type` (RFC 9110 §8.3).
package struct ContentType: Equatable, Sendable {
    /// Longest value in bytes.
    package static let limit = 8192

    /// `type/subtype` in lower case.
    package let mediaType: String
    private let parameters: [FieldParameter]

    /// - Returns: `nil` without a valid `type/subtype`.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.limit else { return nil }
        // Of repeated fields the first one with a value counts.
        var scanner = FieldValueScanner(String(text.drop { $0 == "," || $0 == " " || $0 == "\t" }))
        guard let type = scanner.token(), scanner.skip("/"), let subtype = scanner.token() else {
            return nil
        }
        self.mediaType = "\(type)/\(subtype)".loweredASCII
        self.parameters = FieldParameter.list(&scanner)
    }

    package func parameter(_ name: String) -> String? {
        self.parameters.first { $0.name == name.loweredASCII }?.value
    }

    /// In lower case.
    package var charset: String? { self.parameter("charset").flatMap { $0.isEmpty ? nil : $0.loweredASCII } }

    /// The boundary of a multipart type.
    package var boundary: String? { self.parameter("boundary").flatMap { $0.isEmpty ? nil : $0 } }
}

/// A `data:` URL (RFC 2397).
package struct DataURL: Equatable, Sendable {
    /// Default limit for the length of the URL in bytes: 64 MiB.
    package static let limit = 64 << 20

    /// In lower case; `text/plain` by default.
    package let mediaType: String
    /// In lower case, if present.
    package let charset: String?
    package let content: [UInt8]

    /// - Parameter limit: longest URL in bytes.
    /// - Returns: `nil` for another scheme, without a comma, for a malformed type or Base64, and beyond the limit.
    package init?(_ text: String, limit: Int = Self.limit) {
        guard text.utf8.count <= limit, text.beginsIgnoringCase("data:") else { return nil }
        // The fragment is not part of the content.
        let bytes = Array(text.utf8.dropFirst(5)).prefix { $0 != UInt8(ascii: "#") }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")) else { return nil }
        // `URL` writes a blank as %20.
        var parts = String(decoding: bytes[..<comma], as: UTF8.self).replacing("%20", with: " ")
            .split(separator: ";", omittingEmptySubsequences: false).map(\.trimmingBlanks)
        let isBase64 = parts.count > 1 && parts.last?.matchesIgnoringCase("base64") == true
        if isBase64 { parts.removeLast() }
        let type = parts.isEmpty ? "" : parts.removeFirst()
        guard type.isEmpty || Self.isMediaType(type) else { return nil }
        self.mediaType = type.isEmpty ? "text/plain" : type.loweredASCII
        self.charset = Self.charset(parts)
        let plain = PercentCoding.decoded(bytes[(comma + 1)...])
        guard let content = isBase64 ? Base64.decodedForgivingly(plain) : plain else { return nil }
        self.content = content
    }

    private static func isMediaType(_ type: String) -> Bool {
        let parts = type.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy(\.isToken)
    }

    private static func charset(_ parameters: [String]) -> String? {
        for parameter in parameters {
            let parts = parameter.split(separator: "=", maxSplits: 1).map(\.trimmingBlanks)
            guard parts.count == 2, parts[0].matchesIgnoringCase("charset") else { continue }
            var scanner = FieldValueScanner(PercentCoding.decodedText(parts[1]) ?? parts[1])
            let charset = scanner.quotedString() ?? scanner.text { _ in true }
            return charset.isEmpty ? nil : charset.loweredASCII
        }
        return nil
    }
}
