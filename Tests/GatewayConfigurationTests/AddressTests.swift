import GatewayConfiguration
import GatewayCore
import StreamTransport
import Testing

@Suite("Addresses, RFC 4291 §2.2 and RFC 5952")
struct AddressTests {
    private func parsed(_ text: String) -> AddressBlock? { try? ValueSyntax<AddressBlock>.addressBlock.parse(text) }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1/32"), ("10.0.0.0/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0"),
        ("::1", "::1/128"), ("2001:DB8::/32", "2001:db8::/32"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1/128"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1/128"), ("0:0:1::", "0:0:1::/128"), ("1::8", "1::8/128"),
        ("::ffff:192.0.2.1", "192.0.2.1/32"), ("::ffff:10.0.0.0/104", "10.0.0.0/8"), ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::/95", "::/95"), ("64:ff9b::192.0.2.33", "64:ff9b::c000:221/128"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0/128"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8/128"),
    ])
    func addressIsReadAndWrittenInNormalForm(text: String, normal: String) {
        #expect(self.parsed(text)?.description == normal)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "1..2.3", "0x7f.0.0.1", "127.1", ":", ":::",
        "1:2",
        "1::2::3", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "12345::", "g::", "fe80::1%eth0",
        "1:", ":1",
        "::1.2.3", "1.2.3.4::", "::1.2.3.4:5", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.1/8", "::/129", "/8",
        "a/8",
    ])
    func textThatIsNoAddressIsRefused(text: String) {
        #expect(self.parsed(text) == nil)
    }

    @Test func blockWithHostBitsSuggestsTheBlock() {
        let fault = ValueSyntaxError(
            expected: "a block whose address has no bits after the prefix", remedy: "write 10.0.0.0/8")
        #expect(throws: fault) { try ValueSyntax<AddressBlock>.addressBlock.parse("10.1.2.3/8") }
    }

    @Test func containsAddressesOfItsFamilyOnly() throws {
        let block = try #require(self.parsed("10.16.0.0/12"))
        #expect(block.contains(.v4(0x0A1F_FFFF)))
        #expect(!block.contains(.v4(0x0A20_0000)))
        #expect(block.contains(.v6(high: 0, low: 0xFFFF_0A10_0001)))
        #expect(!block.contains(.v6(high: 0x0A10 << 48, low: 0)))
        let six = try #require(self.parsed("2001:db8:0:0:8000::/65"))
        #expect(six.contains(.v6(high: 0x2001_0DB8_0000_0000, low: 0x8000_0000_0000_0001)))
        #expect(!six.contains(.v6(high: 0x2001_0DB8_0000_0000, low: 1)))
        #expect(try #require(self.parsed("0.0.0.0/0")).contains(.v4(.max)))
    }

    /// The name of an IPv4 peer on a dual-stack socket, which an operator may have copied from a log.
    @Test(arguments: ["10.16.0.0/12", "::ffff:10.16.0.0/108"])
    func ipv4MappedBlockContainsBothNotations(_ text: String) throws {
        let block = try #require(self.parsed(text))
        #expect(block.contains(.v4(0x0A1F_FFFF)))
        #expect(block.contains(.v6(high: 0, low: 0xFFFF_0A1F_FFFF)))
        #expect(!block.contains(.v4(0x0A20_0000)))
        #expect(!block.contains(.v6(high: 0, low: 0xFFFF_0A20_0000)))
    }

    @Test func bothLoopbacksCountAsLoopback() {
        func isLoopback(_ address: IPAddress) -> Bool { AddressBlock.loopback.contains { $0.contains(address) } }
        #expect(isLoopback(.v4(0x7F00_0001)))
        #expect(isLoopback(.v4(0x7FFF_FFFF)))
        #expect(isLoopback(.v6(high: 0, low: 1)))
        #expect(isLoopback(.v6(high: 0, low: 0xFFFF_7F00_0001)))
        #expect(!isLoopback(.v4(0x8000_0000)))
        #expect(!isLoopback(.v6(high: 0, low: 2)))
    }

    @Test func trustedPeerIsFoundInItsBlock() throws {
        let blocks = AddressSet(try [#require(self.parsed("127.0.0.0/8")), #require(self.parsed("fd00::/8"))])
        #expect(blocks.contains(SocketAddress.ipv4(address: 0x7F00_0001, port: 1)))
        #expect(blocks.contains(SocketAddress.ipv6(high: 0, low: 0xFFFF_7F00_0001, scope: 0, port: 1)))
        #expect(blocks.contains(SocketAddress.ipv6(high: 0xFD01 << 48, low: 1, scope: 0, port: 1)))
        #expect(blocks.contains(SocketAddress.unix(path: "")))
        #expect(!blocks.contains(SocketAddress.ipv4(address: 0x0A00_0001, port: 1)))
    }

    @Test(arguments: ["192.0.2.7", "2001:db8::7"])
    func becomesASocketAddressAndBack(text: String) throws {
        let address = try #require(self.parsed(text)).address
        let socket = SocketAddress(address, port: 99)
        #expect(socket.port == 99)
        #expect(socket.ipAddress == address)
    }
}
