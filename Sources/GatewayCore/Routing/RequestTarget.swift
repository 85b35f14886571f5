/// A request target taken apart: origin form, or absolute form whose authority then stands for `Host` (RFC 9112 §3.2.1,
/// §3.2.2).
struct RequestTarget: Hashable, Sendable {
    struct Segment: Hashable, Sendable {
        let encoded: Substring
        let decoded: String
    }

    /// `nil` in origin form.
    let authority: Substring?
    /// What stands between slashes; `/` alone is one empty segment.
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
            guard let decoded = Self.decoded(piece), !PathTraversal.isPossible(with: decoded) else { return nil }
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

    /// - Returns: `nil` for a percent sign without two digits, and for what is not UTF-8 when decoded.
    private static func decoded(_ piece: Substring) -> String? {
        guard piece.utf8.contains(UInt8(ascii: "%")) else { return String(piece) }
        var bytes: [UInt8] = []
        var rest = Array(piece.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.digit),
                let low = rest.popFirst().flatMap(Hexadecimal.digit)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// What no segment of a path may hold, since it could lead an upstream out of the path that the route gives it, or
/// split its log and its requests.
///
/// Clients resolve `.` and `..` before they ask (RFC 3986 §5.2.4). Servers do not agree on what else means the same: a
/// backslash for a slash, parameters behind a semicolon, escapes that are decoded a second time.
enum PathTraversal {
    /// Escapes within escapes that are looked into; what goes deeper is refused.
    private static let depth = 3

    /// - Parameter decoded: a segment, percent-decoded once.
    static func isPossible(with decoded: String) -> Bool {
        guard decoded.utf8.contains(where: self.isSuspect) else { return false }
        var bytes = Array(decoded.utf8)
        for _ in 0..<self.depth {
            if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) || self.hasDots(bytes) { return true }
            guard let next = self.decodedAgain(bytes) else { return false }
            // Bytes that are no UTF-8, overlong forms of dots and slashes among them.
            guard String(validating: next, as: UTF8.self) != nil else { return true }
            bytes = next
        }
        return true
    }

    private static func isSuspect(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "%")
    }

    /// Whether a part between slashes or backslashes is `.` or `..`, up to its semicolon.
    private static func hasDots(_ bytes: [UInt8]) -> Bool {
        bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.contains { part in
            let name = part.prefix { $0 != UInt8(ascii: ";") }
            return (1...2).contains(name.count) && name.allSatisfy { $0 == UInt8(ascii: ".") }
        }
    }

    /// - Returns: `nil` where no escape is left; an escape without two digits stays as it is.
    private static func decodedAgain(_ bytes: [UInt8]) -> [UInt8]? {
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = Hexadecimal.digit(bytes[index + 1]), let low = Hexadecimal.digit(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded.count < bytes.count ? decoded : nil
    }
}
