import CLinux

/// The name servers of this machine, as resolv.conf(5) lists them.
package struct NameServers: Equatable, Sendable {
    private static let path = "/etc/resolv.conf"
    private static let lengthLimit = 64 << 10
    /// As the C library: further ones are ignored.
    private static let limit = 3

    /// With port 53.
    package let addresses: [SocketAddress]
    /// Whether their word about authenticated answers is trusted (`options trust-ad`).
    package let areTrusted: Bool

    /// - Parameter text: the file's content.
    package init(_ text: String) {
        var addresses: [SocketAddress] = []
        var trusts = false
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            switch words.first {
            case "nameserver" where addresses.count < Self.limit && words.count > 1:
                if let address = SocketAddress(literal: String(words[1]), port: 53) { addresses.append(address) }
            case "options": trusts = trusts || words.dropFirst().contains("trust-ad")
            default: break
            }
        }
        self.addresses = addresses
        self.areTrusted = trusts
    }

    /// Those of the system; none if the file cannot be read.
    package static var system: NameServers {
        let bytes = (try? SystemFile.read(self.path, limit: self.lengthLimit)) ?? []
        return NameServers(String(decoding: bytes, as: UTF8.self))
    }

    /// Whether names can be looked up as far as this machine's own networks go: there is a route to a name server other
    /// than this machine itself, or to the Internet.
    static var haveRoute: Bool {
        // Addresses for documentation (RFC 5737, RFC 3849), to which only a default route leads; nothing is sent.
        let elsewhere: [SocketAddress] = [
            .ipv4(address: 0xC000_0201, port: 53), .ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 53),
        ]
        return (self.system.addresses.filter { !$0.isLoopback } + elsewhere).contains { address in
            if case .success = KernelRoutes.route(to: address) { true } else { false }
        }
    }
}
