/// Reads host names and addresses as they stand in URLs.
enum HostText {
    /// Labels of letters, digits, `-` and `_`, 1 to 63 bytes each, 253 together; the last not of digits alone, as that
    /// is the mark of an address (RFC 1123 §2.1). Given back in lower case.
    static func name(_ text: Substring) -> String? {
        let bytes = Array(text.utf8)
        guard (1...253).contains(bytes.count) else { return nil }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy(Self.isNameByte)
            else { return nil }
        }
        guard let last = labels.last, !last.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return text.lowercased()
    }

    /// `host:port`, `host`, `[v6]:port` or `[v6]`, taken apart; `port` is what stands behind the colon.
    static func split(_ authority: Substring) -> (host: Substring, isBracketed: Bool, port: Substring?)? {
        let utf8 = authority.utf8
        if utf8.first == UInt8(ascii: "[") {
            guard let end = utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let host = authority[utf8.index(after: utf8.startIndex)..<end]
            let rest = authority[utf8.index(after: end)...]
            guard !rest.isEmpty else { return (host, true, nil) }
            guard rest.utf8.first == UInt8(ascii: ":") else { return nil }
            return (host, true, rest.dropFirst())
        }
        guard let colon = utf8.firstIndex(of: UInt8(ascii: ":")) else { return (authority, false, nil) }
        return (authority[..<colon], false, authority[utf8.index(after: colon)...])
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}
