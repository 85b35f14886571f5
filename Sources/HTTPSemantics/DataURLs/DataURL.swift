/// A `data:` URL (RFC 2397): the content is in the address.
package struct DataURL: Equatable, Sendable {
    /// Octets of a URL that are read by default: 64 MiB.
    package static let limit = 64 << 20

    /// In lower case; `text/plain` where none is named.
    package let mediaType: String
    /// In lower case; `nil` where none is named.
    package let charset: String?
    package let content: [UInt8]

    /// - Parameter limit: of the whole text, in octets.
    /// - Returns: `nil` for another scheme, for a text without a comma, for a malformed type or Base64, and beyond the
    ///   limit.
    package init?(_ text: String, limit: Int = Self.limit) {
        guard text.utf8.count <= limit, text.beginsIgnoringCase("data:") else { return nil }
        // What is behind the number sign is not of the content.
        let bytes = Array(text.utf8.dropFirst(5)).prefix { $0 != UInt8(ascii: "#") }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")) else { return nil }
        var parts = String(decoding: bytes[..<comma], as: UTF8.self)
            .split(separator: ";", omittingEmptySubsequences: false).map(\.trimmingBlanks)
        let isBase64 = parts.count > 1 && parts.last?.matchesIgnoringCase("base64") == true
        if isBase64 { parts.removeLast() }
        let type = parts.isEmpty ? "" : parts.removeFirst()
        guard type.isEmpty || Self.isMediaType(type) else { return nil }
        self.mediaType = type.isEmpty ? "text/plain" : type.loweredASCII
        self.charset = Self.charset(parts)
        let plain = PercentCoding.decoded(bytes[(comma + 1)...])
        guard let content = isBase64 ? Base64.decoded(plain) : plain else { return nil }
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
            return parts[1].loweredASCII
        }
        return nil
    }
}
