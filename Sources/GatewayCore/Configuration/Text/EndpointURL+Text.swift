extension EndpointURL {
    /// `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`, `ws://HOST[:PORT][/RESOURCE]`, `wss://…` alike, and on a
    /// Unix socket
    /// `tls+unix:///PATH`, `ws+unix:///PATH[:/RESOURCE]`, `wss+unix:///PATH[:/RESOURCE]`. HOST is a name, an IPv4
    /// address, or an IPv6 address in brackets. A resource that is left out is `/`.
    package init(_ text: String) throws(TextFault) {
        let url = try URLText(text)
        guard let scheme = Scheme(rawValue: url.scheme), Self.carriers(of: scheme).contains(url.carrier) else {
            throw TextFault(
                expected: "a URL that begins with tcp, tls, unix, ws or wss",
                remedy: "tls, ws and wss may be followed by +unix")
        }
        var resource = url.resource
        if url.carrier == "unix" {
            let path: String
            (path, resource) = try url.socketPath()
            self.init(scheme: scheme, location: .unix(path: path))
        } else {
            self.init(scheme: scheme, location: try Self.location(url))
        }
        if scheme.speaksWebSocket {
            self.resource = try ResourceTemplate(parsing: resource)
        } else if !resource.isEmpty && (resource != "/" || url.carrier == "unix") {
            throw TextFault(
                expected: "nothing behind the address of \(url.scheme)://", remedy: "only ws and wss have a path")
        }
    }

    private static func carriers(of scheme: Scheme) -> [String] {
        switch scheme {
        case .tcp: [""]
        case .tls, .ws, .wss: ["", "unix"]
        case .unix: ["unix"]
        }
    }

    private static func location(_ url: URLText) throws(TextFault) -> Location {
        guard let (host, isBracketed, port) = HostText.split(url.authority) else {
            throw TextFault(expected: "an IPv6 address between [ and ]")
        }
        let number = try url.port(port, standard: url.standardPort)
        guard number != 0 else { throw TextFault(expected: "a port from 1 to 65535") }
        if let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed {
            return .address(address, port: number)
        }
        guard !isBracketed, let name = HostText.name(host) else {
            throw TextFault(
                expected: "a host name, an IPv4 address, or an IPv6 address in brackets",
                remedy: "write it like [::1]:8080")
        }
        return .name(name, port: number)
    }
}
