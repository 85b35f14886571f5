/// The answer to a Basic challenge (RFC 7617).
package enum BasicCredentials {
    /// The value of `Authorization` or `Proxy-Authorization`; the name and the password go as UTF-8.
    /// - Returns: `nil` for what Basic cannot say: a colon in the name, control characters anywhere (§2).
    package static func fieldValue(user: String, password: String) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 || byte == 0x7F }
        guard !user.utf8.contains(UInt8(ascii: ":")), !user.utf8.contains(where: isControl),
            !password.utf8.contains(where: isControl)
        else { return nil }
        return "Basic " + Base64.encoded(Array(user.utf8) + [UInt8(ascii: ":")] + Array(password.utf8))
    }
}
