/// Where and what to listen for, as one piece of text.
///
/// `tcp://HOST:PORT`, `tls://HOST:PORT`, `ws://HOST[:PORT]`, `wss://HOST[:PORT]`, `unix:///PATH`, the last three kinds
/// on a Unix socket as `tls+unix:///PATH`, `ws+unix:///PATH`, `wss+unix:///PATH`, and any but `unix` on a handed-over
/// socket as
/// `ws+systemd://NAME` or `ws+systemd://0`. HOST is an IPv4 address, an IPv6 address in brackets, `localhost` for
/// 127.0.0.1, or `*` for all addresses of both families. Port 0 lets the system choose.
package struct ListenURL: Sendable, Equatable {
    package let kind: ListenerKind
    /// A Unix socket's has the default mode 0660.
    package let address: ListenAddress
    /// What follows the address, from `/` or `?` on; behind a Unix socket's path, what follows its colon.
    package let resource: String

    package init(_ text: String) throws(TextFault) {
        let url = try URLText(text)
        guard let kind = ListenerKind(rawValue: url.scheme), Self.carriers(of: kind).contains(url.carrier) else {
            throw TextFault(
                expected: "a URL that begins with tcp, tls, ws, wss or unix",
                remedy: "tls, ws and wss may be followed by +unix, and all but unix by +systemd")
        }
        self.kind = kind
        switch url.carrier {
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

    private static func carriers(of kind: ListenerKind) -> [String] {
        switch kind {
        case .tcp: ["", "systemd"]
        case .tls, .ws, .wss: ["", "unix", "systemd"]
        case .unix: ["unix"]
        }
    }

    private static func socket(_ text: Substring) throws(TextFault) -> AdoptedSocket {
        if let index = Decimal.integer(text.utf8), index < 4096 { return .index(index) }
        guard NameText.isName(text), Decimal.integer(text.utf8) == nil else {
            throw TextFault(
                expected: "the name or the number (0 is the first) of a socket handed over by systemd",
                remedy: "write the FileDescriptorName of the socket unit, like ws+systemd://web")
        }
        return .name(String(text))
    }

    private static func address(_ url: URLText) throws(TextFault) -> ListenAddress {
        guard let (host, isBracketed, port) = HostText.split(url.authority) else {
            throw TextFault(expected: "an IPv6 address between [ and ]")
        }
        let number = try url.port(port, standard: url.standardPort)
        if !isBracketed, host == "*" { return .tcpAny(port: number) }
        if !isBracketed, host.lowercased() == "localhost" { return .tcp(.loopback, port: number) }
        guard let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed else {
            throw TextFault(
                expected: "an IP address to listen on",
                remedy: "write an address of this machine, an IPv6 one in brackets, localhost, or * for all addresses")
        }
        return .tcp(address, port: number)
    }
}
