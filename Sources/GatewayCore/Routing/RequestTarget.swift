import GatewayConfiguration
import WireText

/// A parsed request target: origin form, or absolute form, whose authority replaces `Host` (RFC 9112 §3.2.1, §3.2.2).
struct RequestTarget: Hashable, Sendable {
    struct Segment: Hashable, Sendable {
        let encoded: Substring
        let decoded: String
    }

    /// `nil` in origin form.
    let authority: Substring?
    /// Segments between slashes; `/` alone is one empty segment.
    let segments: [Segment]
    let query: Substring?

    /// - Returns: `nil` where the target is malformed.
    init?(_ text: String) {
        // RFC 3986 knows visible ASCII only, and a fragment is never sent (RFC 9110 §7.1).
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }),
            let (authority, rest) = Self.splitAuthority(text[...])
        else { return nil }
        self.authority = authority
        let question = rest.firstIndex(of: "?")
        self.query = question.map { rest[rest.index(after: $0)...] }
        let path = rest[..<(question ?? rest.endIndex)]
        guard path.isEmpty ? authority != nil : path.hasPrefix("/") else { return nil }
        var segments: [Segment] = []
        for piece in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let isEncoded = piece.utf8.contains(UInt8(ascii: "%"))
            guard let decoded = isEncoded ? PercentCoding.decodedText(piece) : String(piece),
                !PathTraversal.isPossible(with: decoded)
            else { return nil }
            segments.append(Segment(encoded: piece, decoded: decoded))
        }
        self.segments = segments.isEmpty ? [Segment(encoded: "", decoded: "")] : segments
    }

    private static func splitAuthority(_ text: Substring) -> (Substring?, Substring)? {
        guard !text.hasPrefix("/") else { return (nil, text) }
        for scheme in ["http://", "https://", "ws://", "wss://"]
        where text.count > scheme.count && text.prefix(scheme.count).lowercased() == scheme {
            let rest = text.dropFirst(scheme.count)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            guard end > rest.startIndex, !rest[..<end].contains("@") else { return nil }
            return (rest[..<end], rest[end...])
        }
        return nil
    }
}
