import WireText

/// The syntax of `host` and `host:port` (RFC 3986 §3.2, RFC 9110 §7.2).
package enum Authority {
    /// Whether `text` can be the value of a Host field that names a host.
    package static func isWellFormed(_ text: some StringProtocol) -> Bool {
        if let isWellFormed = self.isWellFormedName(text.utf8) { return isWellFormed }
        let bytes = Array(text.utf8)
        let hostEnd = self.endOfHost(bytes)
        guard hostEnd > 0, self.isHost(bytes[..<hostEnd]) else { return false }
        if hostEnd == bytes.count { return true }
        let digits = bytes[(hostEnd + 1)...]
        guard digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65535
    }

    /// As `isWellFormed`, in a single pass.
    /// - Returns: `nil` for an address in brackets.
    private static func isWellFormedName(_ text: some Collection<UInt8>) -> Bool? {
        guard text.first != UInt8(ascii: "[") else { return nil }
        var hostCount = 0
        var port: Int?
        var digitCount = 0
        for byte in text {
            if let number = port {
                guard (0x30...0x39).contains(byte), digitCount < 5 else { return false }
                port = number * 10 + Int(byte - 0x30)
                digitCount += 1
            } else if byte == UInt8(ascii: ":") {
                port = 0
            } else {
                guard byte.isNameCharacter else { return false }
                hostCount += 1
            }
        }
        return hostCount > 0 && port ?? 0 <= 65535
    }

    /// Whether `bytes` are a name, an IPv4 address or an IPv6 address in brackets.
    private static func isHost(_ bytes: some Collection<UInt8>) -> Bool {
        if bytes.first == UInt8(ascii: "[") {
            let inner = bytes.dropFirst().dropLast()
            return bytes.count > 4 && Array(bytes).last == UInt8(ascii: "]") && inner.contains(UInt8(ascii: ":"))
                && inner.allSatisfy { $0.isAddressCharacter }
        }
        return !bytes.isEmpty && bytes.allSatisfy { $0.isNameCharacter }
    }

    /// The value of the Host field. An IPv6 address is put in brackets, without its zone, which has only local meaning
    /// (RFC 6874 §4).
    static func rendered(host: String, port: Int?, isSecure: Bool) -> String {
        var rendered = host
        if host.utf8.contains(UInt8(ascii: ":")) {
            let bare = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
            rendered = "[" + bare.prefix { $0 != "%" } + "]"
        }
        guard let port, port != (isSecure ? 443 : 80) else { return rendered }
        return rendered + ":" + String(port)
    }

    /// Offset of the colon before the port, or the end.
    private static func endOfHost(_ bytes: [UInt8]) -> Int {
        let start = bytes.first == UInt8(ascii: "[") ? bytes.firstIndex(of: UInt8(ascii: "]")) ?? 0 : 0
        return bytes[start...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
    }
}

extension UInt8 {
    /// A character of an IPv6 address: hexadecimal digits, colons and dots.
    fileprivate var isAddressCharacter: Bool {
        switch self.loweredASCII {
        case 0x30...0x3A, UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// A character of reg-name: unreserved, sub-delims and the percent sign (RFC 3986 §3.2.2).
    fileprivate var isNameCharacter: Bool {
        switch self.loweredASCII {
        case 0x30...0x39, UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "-"): true
        default: "-._~!$&'()*+;=%".utf8.contains(self)
        }
    }
}

/// The resource name of a request target (RFC 6455 §3 and §4.2.1, RFC 9112 §3.2).
struct ResourceName: Equatable {
    /// Path and query, beginning with `/`.
    let name: String
    /// The authority of a target in absolute-form, which overrides the Host field (RFC 9112 §3.2.2).
    let authority: String?

    static func read(_ target: String) throws(HandshakeRefusal) -> ResourceName {
        guard !target.utf8.contains(UInt8(ascii: "#")) else {
            throw .malformed("The target has a fragment; leave out '#' and what follows it, or write it as %23.")
        }
        if target.utf8.first == UInt8(ascii: "/") { return ResourceName(name: target, authority: nil) }
        for scheme in ["http://", "https://", "ws://", "wss://"] {
            guard String(target.prefix(scheme.count)).matchesIgnoringCase(scheme) else { continue }
            let rest = target.dropFirst(scheme.count)
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            guard Authority.isWellFormed(authority) else { break }
            let name = rest.dropFirst(authority.count)
            return ResourceName(name: name.hasPrefix("/") ? String(name) : "/" + name, authority: String(authority))
        }
        throw .malformed("The target is neither a path nor an http, https, ws or wss URL.")
    }
}
