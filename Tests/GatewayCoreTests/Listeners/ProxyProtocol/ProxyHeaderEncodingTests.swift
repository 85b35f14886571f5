import GatewayConfiguration
import GatewayCore
import StreamTransport
import Testing

@Suite("PROXY protocol header written, proxy-protocol.txt §2")
struct ProxyHeaderEncodingTests {
    private static let client = SocketAddress.ipv4(address: 0xC0A8_0001, port: 56324)
    private static let server = SocketAddress.ipv4(address: 0xC0A8_000B, port: 443)

    @Test func lineOfTheSpecificationIsWritten() {
        let header = ProxyHeader.proxied(source: Self.client, destination: Self.server)
        #expect(header.encoded(.v1) == Array("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n".utf8))
        #expect(ProxyHeader.local.encoded(.v1) == Array("PROXY UNKNOWN\r\n".utf8))
    }

    @Test func binaryHeaderOfTheSpecificationIsWritten() {
        let header = ProxyHeader.proxied(source: Self.client, destination: Self.server)
        let expected: [UInt8] = [
            0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0x00, 0x0C,
            192, 168, 0, 1, 192, 168, 0, 11, 0xDC, 0x04, 0x01, 0xBB,
        ]
        #expect(header.encoded(.v2) == expected)
        #expect(ProxyHeader.local.encoded(.v2) == Array(expected.prefix(12)) + [0x20, 0, 0, 0])
    }

    @Test func ipv4NextToIPv6IsWrittenAsIPv6() {
        let six = SocketAddress.ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 3, port: 80)
        let header = ProxyHeader.proxied(source: Self.client, destination: six)
        #expect(header.encoded(.v1) == Array("PROXY TCP6 ::ffff:c0a8:1 2001:db8::1 56324 80\r\n".utf8))
        #expect(
            header.encoded(.v2).dropFirst(16).prefix(16) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 168, 0, 1])
    }

    @Test func addressesOfDifferentFamiliesAreWrittenAsUnknown() {
        let header = ProxyHeader.proxied(source: Self.client, destination: .unix(path: "/x"))
        #expect(header.encoded(.v1) == ProxyHeader.local.encoded(.v1))
        #expect(header.encoded(.v2) == ProxyHeader.local.encoded(.v2))
    }

    @Test func aPathTooLongIsCut() {
        let path = "/" + String(repeating: "a", count: 300)
        let bytes = ProxyHeader.proxied(source: .unix(path: path), destination: .unix(path: "@b")).encoded(.v2)
        #expect(bytes.count == 16 + 216)
        #expect(bytes[16 + 107] == 0)
        #expect(bytes.dropFirst(16 + 108).starts(with: [0, 0x62, 0]))
    }
}
