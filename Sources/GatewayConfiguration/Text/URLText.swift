/// A URL split into its components, which are not interpreted yet.
struct URLText {
    /// In lower case, without `+` and the transport.
    let scheme: String
    /// The part of the scheme after `+`: `unix`, `systemd`, or empty. `unix` for the scheme `unix`.
    let transport: String
    /// The part between `//` and the first `/` or `?`.
    let authority: Substring
    /// Path and query; may be empty.
    let resource: Substring

    /// - Parameter example: for the error about a text without a scheme.
    init(_ text: String, like example: String = "ws://127.0.0.1:8080") throws(ValueSyntaxError) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw ValueSyntaxError(
                expected: "a URL of at most 4096 printable ASCII characters without spaces",
                remedy: "percent-encode other characters, and write host names in their xn-- form")
        }
        guard let range = text.firstRange(of: "://") else {
            throw ValueSyntaxError(expected: "a URL with ://", remedy: "write it like \(example)")
        }
        let schemes = text[..<range.lowerBound].lowercased().split(separator: "+", omittingEmptySubsequences: false)
        guard schemes.count <= 2, let scheme = schemes.first, scheme != "unix" || schemes.count == 1,
            !text.utf8.contains(UInt8(ascii: "#"))
        else {
            throw ValueSyntaxError(
                expected: "a URL of the form scheme://host:port/path", remedy: "write it like ws://127.0.0.1:8080/path")
        }
        self.scheme = String(scheme)
        self.transport = schemes.count == 2 ? String(schemes[1]) : scheme == "unix" ? "unix" : ""
        let rest = text[range.upperBound...]
        let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        self.authority = rest[..<end]
        self.resource = rest[end...]
        // `unix://@name`, of an abstract socket, has no user either.
        guard self.transport == "unix" || !self.authority.utf8.contains(UInt8(ascii: "@")) else {
            throw ValueSyntaxError(
                expected: "a URL without a user name and password",
                remedy: "send credentials in a header, like Authorization")
        }
    }

    /// Host and port; an IPv6 address is in brackets.
    func splitAuthority() throws(ValueSyntaxError) -> (host: Substring, isBracketed: Bool, port: Substring?) {
        let colons = self.authority.utf8.count { $0 == UInt8(ascii: ":") }
        guard colons < 2 || self.authority.utf8.first == UInt8(ascii: "[") else {
            throw ValueSyntaxError(
                expected: "one colon at most after \(self.scheme)://, or an IPv6 address in brackets",
                remedy: "write it like \(self.scheme)://[::1]:8080")
        }
        guard let parts = HostText.split(self.authority) else {
            throw ValueSyntaxError(expected: "an IPv6 address between [ and ]")
        }
        return parts
    }

    /// The parsed port, or `defaultPort` if there is none.
    /// - Parameter lowest: 1 where 0 does not stand for a free port.
    func port(
        _ written: Substring?, default defaultPort: UInt16?, from lowest: UInt16 = 0
    ) throws(ValueSyntaxError) -> UInt16 {
        guard let written else {
            guard let defaultPort else {
                throw ValueSyntaxError(
                    expected: "a port after the host of \(self.scheme)://", remedy: "write it like :5900")
            }
            return defaultPort
        }
        guard let port = Decimal.port(written.utf8), port >= lowest else {
            throw ValueSyntaxError(expected: "a port from \(lowest) to 65535")
        }
        return port
    }

    /// 80 for `ws` and 443 for `wss` (RFC 6455 §3); streams have none.
    var defaultPort: UInt16? {
        switch self.scheme {
        case "ws": 80
        case "wss": 443
        default: nil
        }
    }

    /// `ws` for `http`, and `wss` for `https`.
    var webSocketScheme: String? {
        switch self.scheme {
        case "http": "ws"
        case "https": "wss"
        default: nil
        }
    }

    /// The path of a Unix socket, and the part after its first colon.
    func socketPath() throws(ValueSyntaxError) -> (path: String, resource: Substring) {
        let expected = "the absolute path of a socket, at most 107 bytes, after \(self.scheme)://"
        guard self.authority.first != "@" else {
            throw ValueSyntaxError(
                expected: expected, remedy: "abstract sockets are not supported; write it like unix:///run/app.sock")
        }
        guard self.authority.isEmpty, self.resource.first == "/" else {
            throw ValueSyntaxError(expected: expected, remedy: "write three slashes: unix:///run/app.sock")
        }
        let colon = self.resource.firstIndex(of: ":") ?? self.resource.endIndex
        let path = self.resource[..<colon]
        guard (2...107).contains(path.utf8.count), !path.contains("?"), path.last != "/" else {
            throw ValueSyntaxError(expected: expected)
        }
        return (String(path), self.resource[colon...].dropFirst())
    }
}

extension EndpointURL {
    /// Parses `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`, `ws://HOST[:PORT][/RESOURCE]`, `wss://…` alike, and
    /// on a Unix socket `tls+unix:///PATH`, `ws+unix:///PATH[:/RESOURCE]`, `wss+unix:///PATH[:/RESOURCE]`. HOST is a
    /// name, an IPv4 address, or an IPv6 address in brackets. The default of RESOURCE is `/`.
    package init(_ text: String) throws(ValueSyntaxError) {
        let url = try URLText(text, like: "ws://127.0.0.1:8080 or tcp://127.0.0.1:5900")
        guard let scheme = Scheme(rawValue: url.scheme), Self.transports(of: scheme).contains(url.transport) else {
            throw ValueSyntaxError(
                expected: "a URL that begins with tcp, tls, unix, ws or wss",
                remedy: url.webSocketScheme.map { "for WebSocket, write \($0)://" }
                    ?? "tls, ws and wss may be followed by +unix")
        }
        var resource = url.resource
        if url.transport == "unix" {
            let path: String
            (path, resource) = try url.socketPath()
            self.init(scheme: scheme, location: .unix(path: path))
        } else {
            self.init(scheme: scheme, location: try Self.location(url, default: url.defaultPort))
        }
        if scheme.speaksWebSocket {
            self.resource = try ResourceTemplate(parsing: resource)
        } else if !resource.isEmpty && (resource != "/" || url.transport == "unix") {
            throw ValueSyntaxError(
                expected: "nothing after the address of \(url.scheme)://", remedy: "only ws and wss have a path")
        }
    }

    private static func transports(of scheme: Scheme) -> [String] {
        switch scheme {
        case .tcp: [""]
        case .tls, .ws, .wss: ["", "unix"]
        case .unix: ["unix"]
        }
    }

    static func location(_ url: URLText, default defaultPort: UInt16?) throws(ValueSyntaxError) -> Location {
        let (host, isBracketed, port) = try url.splitAuthority()
        let number = try url.port(port, default: defaultPort, from: 1)
        if let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed {
            return .address(address, port: number)
        }
        guard !isBracketed, let name = HostText.name(host) else {
            throw ValueSyntaxError(
                expected: "a host name, an IPv4 address, or an IPv6 address in brackets",
                remedy: "write it like [::1]:8080")
        }
        return .name(name, port: number)
    }
}

/// Address and kind of a listener as a URL.
///
/// `tcp://HOST:PORT`, `tls://HOST:PORT`, `ws://HOST[:PORT]`, `wss://HOST[:PORT]`, `unix:///PATH`; on a Unix socket
/// `tls+unix:///PATH`, `ws+unix:///PATH`, `wss+unix:///PATH`; on a socket passed by systemd any scheme but `unix`, as
/// `ws+systemd://NAME` or `ws+systemd://0`. HOST is an IPv4 address, an IPv6 address in brackets, `localhost` for
/// 127.0.0.1, or `*` for all addresses of both families. For port 0 the kernel assigns one.
package struct ListenURL: Sendable, Equatable {
    package let kind: ListenerKind
    /// A Unix socket has the default mode 0660.
    package let address: ListenAddress
    /// Path and query, beginning with `/` or `?`; for a Unix socket, the part after the colon.
    package let resource: String

    package init(_ text: String) throws(ValueSyntaxError) {
        let url = try URLText(text)
        guard let kind = ListenerKind(rawValue: url.scheme), Self.transports(of: kind).contains(url.transport) else {
            throw ValueSyntaxError(
                expected: "a URL that begins with tcp, tls, ws, wss or unix",
                remedy: url.webSocketScheme.map { "for WebSocket, write \($0)://" }
                    ?? "tls, ws and wss may be followed by +unix, and all but unix by +systemd")
        }
        self.kind = kind
        switch url.transport {
        case "unix":
            let (path, resource) = try url.socketPath()
            self.address = .unix(path: path, mode: 0o660)
            self.resource = String(resource)
        case "systemd":
            self.address = .adopted(try Self.socket(url.authority))
            self.resource = String(url.resource)
        default:
            self.address = try Self.address(url)
            self.resource = String(url.resource)
        }
    }

    private static func transports(of kind: ListenerKind) -> [String] {
        switch kind {
        case .tcp: ["", "systemd"]
        case .tls, .ws, .wss: ["", "unix", "systemd"]
        case .unix: ["unix"]
        }
    }

    private static func socket(_ text: Substring) throws(ValueSyntaxError) -> AdoptedSocket {
        if let index = Decimal.integer(text.utf8), index < 4096 { return .index(index) }
        guard NameText.isName(text), Decimal.integer(text.utf8) == nil else {
            throw ValueSyntaxError(
                expected: "the name or the index (0 is the first) of a socket passed by systemd",
                remedy: "write the FileDescriptorName of the socket unit, like ws+systemd://web")
        }
        return .name(String(text))
    }

    private static func address(_ url: URLText) throws(ValueSyntaxError) -> ListenAddress {
        let (host, isBracketed, port) = try url.splitAuthority()
        let number = try url.port(port, default: url.defaultPort)
        if !isBracketed, host == "*" { return .tcpAny(port: number) }
        if !isBracketed, host.lowercased() == "localhost" { return .tcp(.loopback, port: number) }
        guard let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed else {
            throw ValueSyntaxError(
                expected: "an IP address to listen on",
                remedy: "write an address of this machine, an IPv6 one in brackets, localhost, or * for all addresses")
        }
        return .tcp(address, port: number)
    }
}

/// Address of the control plane as a URL: `http://HOST[:PORT]`, `https://HOST[:PORT]`, or `unix:///PATH`. HOST is an IP
/// address or `localhost`.
package struct ControlURL: Sendable, Equatable {
    package let address: ControlSettings.Address
    package let isSecure: Bool

    package init(_ text: String) throws(ValueSyntaxError) {
        let url = try URLText(text, like: "http://127.0.0.1:8081")
        self.isSecure = url.scheme == "https"
        if url.scheme == "unix" {
            let (path, resource) = try url.socketPath()
            guard resource.isEmpty else { throw ValueSyntaxError(expected: "nothing after the path of a socket") }
            self.address = .unix(path: path, mode: 0o600)
            return
        }
        guard ["http", "https"].contains(url.scheme), url.transport.isEmpty, url.resource.isEmpty || url.resource == "/"
        else {
            throw ValueSyntaxError(
                expected: "an address for the control plane",
                remedy: "write http://127.0.0.1:8081 or unix:///run/sluice/control.sock")
        }
        let (host, isBracketed, port) = try url.splitAuthority()
        let number = try url.port(port, default: ControlSettings.defaultPort)
        if !isBracketed, host.lowercased() == "localhost" {
            self.address = .tcp(.loopback, port: number)
            return
        }
        guard let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed else {
            throw ValueSyntaxError(
                expected: "an IP address for the control plane",
                remedy: "listen on 127.0.0.1, [::1] or a Unix socket; 0.0.0.0 or [::] is every address")
        }
        self.address = .tcp(address, port: number)
    }
}

extension ValueSyntax<ControlURL> {
    package static var controlURL: ValueSyntax {
        ValueSyntax(
            .text(
                "unix:///run/sluice/control.sock",
                "`http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:///PATH`; HOST is an IP address or `localhost`")
        ) { text throws(ValueSyntaxError) in try ControlURL(text) }
    }
}
