/// The `Cookie` field of a request (RFC 6265bis §4.2, §5.8.3).
package enum CookieField {
    /// The field's value, in the order of `cookies`; `nil` when there are none.
    package static func rendered(_ cookies: [Cookie]) -> String? {
        self.rendered(cookies.map { ($0.name, $0.value) })
    }

    /// The same for names with their values. Nothing in them can begin another cookie or another field: a pair that
    /// holds a semicolon or a control character is left out.
    package static func rendered(_ pairs: [(String, String)]) -> String? {
        var value: [UInt8] = []
        for (name, content) in pairs where !self.isBroken(name) && !self.isBroken(content) {
            if !value.isEmpty { value += [UInt8(ascii: ";"), UInt8(ascii: " ")] }
            if !name.isEmpty {
                value += name.utf8
                value.append(UInt8(ascii: "="))
            }
            value += content.utf8
        }
        return value.isEmpty ? nil : String(decoding: value, as: UTF8.self)
    }

    private static func isBroken(_ text: String) -> Bool {
        text.utf8.contains { $0.isControl || $0 == UInt8(ascii: ";") }
    }
}
