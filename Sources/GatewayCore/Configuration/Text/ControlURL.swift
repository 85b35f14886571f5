/// Where the control plane listens, as text: `http://HOST[:PORT]`, `https://HOST[:PORT]`, or `unix:///PATH`. HOST is an
/// address or `localhost`.
package struct ControlURL: Sendable, Equatable {
    package let address: ControlSettings.Address
    package let isSecure: Bool

    init(_ address: ControlSettings.Address) {
        self.address = address
        self.isSecure = false
    }

    package init(_ text: String) throws(TextFault) {
        let url = try URLText(text)
        self.isSecure = url.scheme == "https"
        if url.scheme == "unix" {
            let (path, resource) = try url.socketPath()
            guard resource.isEmpty else { throw TextFault(expected: "nothing behind the path of a socket") }
            self.address = .unix(path: path, mode: 0o600)
            return
        }
        guard ["http", "https"].contains(url.scheme), url.carrier.isEmpty, url.resource.isEmpty || url.resource == "/"
        else {
            throw TextFault(
                expected: "an address for the control plane",
                remedy: "write http://127.0.0.1:8081 or unix:///run/sluice/control.sock")
        }
        guard let (host, isBracketed, port) = HostText.split(url.authority) else {
            throw TextFault(expected: "an IPv6 address between [ and ]")
        }
        let number = try url.port(port, standard: ControlSettings.standardPort)
        if !isBracketed, host.lowercased() == "localhost" {
            self.address = .tcp(.loopback, port: number)
            return
        }
        guard let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed else {
            throw TextFault(
                expected: "an address in digits for the control plane",
                remedy: "listen on 127.0.0.1, [::1] or a Unix socket; 0.0.0.0 or [::] is every address")
        }
        self.address = .tcp(address, port: number)
    }
}

extension ValueSyntax<ControlURL> {
    package static var controlURL: ValueSyntax {
        ValueSyntax(.text("unix:///run/sluice/control.sock")) { text throws(TextFault) in try ControlURL(text) }
    }
}

extension IPAddress {
    /// 127.0.0.0/8 (RFC 1122 §3.2.1.3) and ::1 (RFC 4291 §2.5.3).
    package var isLoopback: Bool {
        switch self.unmapped {
        case .v4(let bits): bits >> 24 == 127
        case .v6(let high, let low): high == 0 && low == 1
        }
    }
}
