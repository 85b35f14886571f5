/// Where the control plane listens, as text: `http://HOST[:PORT]`, or `unix:///PATH`. HOST is an address of loopback:
/// 127.0.0.1 and its like, `[::1]`, or `localhost`.
package struct ControlURL: Sendable, Equatable {
    package let address: ControlSettings.Address

    init(_ address: ControlSettings.Address) {
        self.address = address
    }

    package init(_ text: String) throws(TextFault) {
        let url = try URLText(text)
        if url.scheme == "unix" {
            let (path, resource) = try url.socketPath()
            guard resource.isEmpty else { throw TextFault(expected: "nothing behind the path of a socket") }
            self.address = .unix(path: path, mode: 0o600)
            return
        }
        guard url.scheme == "http", url.carrier.isEmpty, url.resource.isEmpty || url.resource == "/" else {
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
        guard let address = AddressText.address(host.utf8), (address.bitWidth == 128) == isBracketed,
            address.isLoopback
        else {
            throw TextFault(
                expected: "an address of loopback",
                remedy: "who may reach the control plane may do everything: listen on 127.0.0.1, [::1] or a Unix socket"
            )
        }
        self.address = .tcp(address, port: number)
    }
}

extension ValueSyntax<ControlURL> {
    package static var controlURL: ValueSyntax {
        ValueSyntax { text throws(TextFault) in try ControlURL(text) }
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
