/// A URL taken apart at its first marks, before anybody asks what the parts mean.
struct URLText {
    /// In lower case, without the part after `+`.
    let scheme: String
    /// What follows `+` in the scheme: `unix`, `systemd`, or nothing.
    let carrier: String
    /// Between `//` and the first `/` or `?`.
    let authority: Substring
    /// From that mark on; empty when there is none.
    let resource: Substring

    init(_ text: String) throws(TextFault) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw TextFault(
                expected: "a URL of at most 4096 printable ASCII characters without spaces",
                remedy: "percent-encode other characters, and write host names in their xn-- form")
        }
        guard let range = text.firstRange(of: "://") else {
            throw TextFault(expected: "a URL with ://", remedy: "write it like ws://127.0.0.1:8080")
        }
        let schemes = text[..<range.lowerBound].lowercased().split(separator: "+", omittingEmptySubsequences: false)
        guard schemes.count <= 2, let scheme = schemes.first, scheme != "unix" || schemes.count == 1,
            !text.utf8.contains(UInt8(ascii: "#"))
        else {
            throw TextFault(
                expected: "a URL of the form scheme://host:port/path", remedy: "write it like ws://127.0.0.1:8080/path")
        }
        self.scheme = String(scheme)
        self.carrier = schemes.count == 2 ? String(schemes[1]) : scheme == "unix" ? "unix" : ""
        let rest = text[range.upperBound...]
        let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        self.authority = rest[..<end]
        self.resource = rest[end...]
        guard !self.authority.utf8.contains(UInt8(ascii: "@")) else {
            throw TextFault(
                expected: "a URL without a user name and password",
                remedy: "send credentials in a header, like Authorization")
        }
    }

    /// The port, or `standard` where none is written.
    func port(_ written: Substring?, standard: UInt16?) throws(TextFault) -> UInt16 {
        guard let written else {
            guard let standard else {
                throw TextFault(expected: "a port behind the host of \(self.scheme)://", remedy: "write it like :5900")
            }
            return standard
        }
        guard let port = Decimal.port(written.utf8) else { throw TextFault(expected: "a port from 0 to 65535") }
        return port
    }

    /// `ws` is 80 and `wss` 443 (RFC 6455 §3); streams have none.
    var standardPort: UInt16? {
        switch self.scheme {
        case "ws": 80
        case "wss": 443
        default: nil
        }
    }

    /// The path of a Unix socket, and what follows its first colon.
    func socketPath() throws(TextFault) -> (path: String, resource: Substring) {
        let expected = "the absolute path of a socket, at most 107 bytes, after \(self.scheme)://"
        guard self.authority.isEmpty, self.resource.first == "/" else {
            throw TextFault(expected: expected, remedy: "write three slashes: unix:///run/app.sock")
        }
        let colon = self.resource.firstIndex(of: ":") ?? self.resource.endIndex
        let path = self.resource[..<colon]
        guard (2...107).contains(path.utf8.count), !path.contains("?"), path.last != "/" else {
            throw TextFault(expected: expected)
        }
        return (String(path), self.resource[colon...].dropFirst())
    }
}
