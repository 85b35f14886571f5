import GatewayConfiguration
import GatewayCore
import StreamTransport
import Testing

@Suite("Blocks of addresses")
struct AddressSetTests {
    private static func peers(_ blocks: AddressBlock?...) -> AddressSet { AddressSet(blocks.compactMap(\.self)) }

    @Test func loopbackIsTrustedByDefault() {
        let peers = AddressSet(AddressBlock.loopback)
        #expect(peers.contains(.ipv4(address: 0x7F00_0001, port: 1)))
        #expect(peers.contains(.ipv4(address: 0x7FFF_FFFF, port: 1)))
        #expect(!peers.contains(.ipv4(address: 0x8000_0000, port: 1)))
        #expect(peers.contains(.ipv6(high: 0, low: 1, scope: 0, port: 1)))
        #expect(!peers.contains(.ipv6(high: 0, low: 2, scope: 0, port: 1)))
        #expect(peers.contains(.ipv6(high: 0, low: 0xFFFF_7F00_0001, scope: 0, port: 1)))
        #expect(peers.contains(.unix(path: "")))
    }

    @Test func blocksEndAtTheirBits() {
        let peers = Self.peers(
            AddressBlock(.v4(0x0A01_0000), prefixLength: 15), AddressBlock(.v4(0x0A00_0000), prefixLength: 15),
            AddressBlock(.v6(high: 0x2001_0DB8_0000_0000, low: 0), prefixLength: 33))
        #expect(peers.contains(.ipv4(address: 0x0A00_FFFF, port: 1)))
        #expect(peers.contains(.ipv4(address: 0x0A01_FFFF, port: 1)))
        #expect(!peers.contains(.ipv4(address: 0x0A02_0000, port: 1)))
        #expect(peers.contains(.ipv6(high: 0x2001_0DB8_7FFF_FFFF, low: .max, scope: 0, port: 1)))
        #expect(!peers.contains(.ipv6(high: 0x2001_0DB8_8000_0000, low: 0, scope: 0, port: 1)))
    }

    @Test func theWholeAddressSpaceCanBeTrusted() {
        let peers = Self.peers(AddressBlock(.v4(0), prefixLength: 0))
        #expect(peers.contains(.ipv4(address: .max, port: 1)))
        #expect(!peers.contains(.ipv6(high: 1, low: 1, scope: 0, port: 1)))
        #expect(peers.contains(.ipv6(high: 0, low: 0xFFFF_0102_0304, scope: 0, port: 1)))
    }

    @Test func noPeerIsTrustedWithoutBlocks() {
        #expect(!Self.peers().contains(.unix(path: "/x")))
    }
}
