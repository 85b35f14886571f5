import WireText

/// Detects path segments that could make an upstream leave the route's path, or inject lines into its log and requests.
///
/// Clients resolve `.` and `..` before they send a request (RFC 3986 §5.2.4). Servers differ in what they treat alike:
/// backslash and slash, parameters after a semicolon, escapes that are decoded twice.
package enum PathTraversal {
    /// Levels of nested escapes that are decoded; deeper ones are rejected.
    private static let depth = 3

    /// - Parameter decoded: a segment, percent-decoded once.
    package static func isPossible(with decoded: String) -> Bool {
        guard decoded.utf8.contains(where: self.needsInspection) else { return false }
        var bytes = Array(decoded.utf8)
        for _ in 0..<self.depth {
            if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) || self.hasDotSegment(bytes) { return true }
            // An escape without two digits is kept.
            let next = PercentCoding.decoded(bytes)
            guard next.count < bytes.count else { return false }
            // Invalid UTF-8 may be an overlong form of a dot or slash.
            guard String(validating: next, as: UTF8.self) != nil else { return true }
            bytes = next
        }
        return true
    }

    private static func needsInspection(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "%")
    }

    /// Whether a part between slashes or backslashes is `.` or `..`, up to its semicolon.
    private static func hasDotSegment(_ bytes: [UInt8]) -> Bool {
        bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.contains { part in
            let name = part.prefix { $0 != UInt8(ascii: ";") }
            return (1...2).contains(name.count) && name.allSatisfy { $0 == UInt8(ascii: ".") }
        }
    }
}
