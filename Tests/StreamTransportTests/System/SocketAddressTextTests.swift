import StreamTransport
import Testing

@Suite("Text of socket addresses")
struct SocketAddressTextTests {
    @Test(
        arguments: [
            ("0.0.0.0", 0), ("127.0.0.1", 80), ("192.0.2.1", 8080), ("255.255.255.255", 65_535), ("10.20.30.40", 5),
            ("::", 0), ("::1", 443), ("2001:db8::1", 65_535),
        ] as [(String, UInt16)])
    func addressIsReadBackFromItsText(_ host: String, _ port: UInt16) throws {
        let address = try #require(SocketAddress(literal: host, port: port))
        #expect(address.host == host)
        #expect(address.description == (host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"))
    }

    @Test func textOfAUnixAddressIsItsPath() {
        #expect(SocketAddress.unix(path: "/run/app.sock").description == "unix:/run/app.sock")
        #expect(SocketAddress.unix(path: "").description == "unix:")
        #expect(SocketAddress.unix(path: "@name").host == "@name")
    }
}
