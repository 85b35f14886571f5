/// The `Cookie` field of a request (RFC 6265bis §4.2, §5.8.3).
package enum CookieField {
    /// The field's value, in the order of `cookies`; `nil` when there are none.
    package static func rendered(_ cookies: some Sequence<Cookie>) -> String? {
        self.rendered(cookies.lazy.map { ($0.name, $0.value) })
    }

    /// The same for names with their values. Nothing in them can begin another cookie or another field: a pair that
    /// holds a semicolon or a control character is left out.
    package static func rendered(_ pairs: some Sequence<(String, String)>) -> String? {
        var value = ""
        for (name, content) in pairs {
            let isBroken = { (byte: UInt8) in byte.isControl || byte == UInt8(ascii: ";") }
            guard !name.utf8.contains(where: isBroken), !content.utf8.contains(where: isBroken) else { continue }
            if !value.isEmpty { value += "; " }
            if !name.isEmpty { value += name + "=" }
            value += content
        }
        return value.isEmpty ? nil : value
    }
}
