/// `Content-Range` in bytes (RFC 9110 §14.4).
package struct ContentRange: Equatable, Sendable {
    /// The bytes that the content holds; `nil` for a 416, where it holds none.
    package let bytes: ClosedRange<Int64>?
    /// Of the whole; `nil` where the server does not know it.
    package let total: Int64?

    package init?(_ text: String) {
        guard text.utf8.count <= 128 else { return nil }
        var scanner = FieldScanner(text)
        scanner.skipBlanks()
        guard let unit = scanner.token(), unit.matchesIgnoringCase("bytes") else { return nil }
        scanner.skipBlanks()
        let range = scanner.rawText(to: UInt8(ascii: "/")).trimmingBlanks
        guard scanner.skip(UInt8(ascii: "/")) else { return nil }
        let total = scanner.text { _ in true }.trimmingBlanks
        self.total = Self.number(total)
        guard self.total != nil || total == "*" else { return nil }
        if range == "*" {
            guard self.total != nil else { return nil }
            self.bytes = nil
            return
        }
        let ends = range.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            self.total.map({ last < $0 }) ?? true
        else { return nil }
        self.bytes = first...last
    }

    private static func number(_ digits: some StringProtocol) -> Int64? {
        digits.utf8.count <= 18 ? digits.clampedDecimal(limit: .max) : nil
    }
}
