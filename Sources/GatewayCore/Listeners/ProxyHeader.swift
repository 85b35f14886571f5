import ByteKernels
import GatewayConfiguration
import StreamTransport

/// A PROXY protocol header (haproxy's proxy-protocol.txt, versions 1 and 2).
package enum ProxyHeader: Hashable, Sendable {
    /// No proxied addresses: version 2's LOCAL, or addresses unknown to the sender. Use those of the connection.
    case local
    /// The client is `source`, and connected to `destination`.
    case proxied(source: SocketAddress, destination: SocketAddress)
}

extension ProxyHeader {
    /// Encodes the header that begins a connection.
    ///
    /// An IPv4 and an IPv6 address together are both written as IPv6. Unix sockets have no form in version 1 and become
    /// UNKNOWN, as does every pair that fits no family; in version 2 such a pair becomes LOCAL.
    package func encoded(_ version: ProxyProtocolVersion) -> [UInt8] {
        switch version {
        case .v1: self.line
        case .v2: self.binary
        }
    }

    private var line: [UInt8] {
        let text: String =
            switch self.pair {
            case .ipv4(let source, let destination):
                "PROXY TCP4 \(IPAddress.v4(source.0)) \(IPAddress.v4(destination.0)) \(source.1) \(destination.1)\r\n"
            case .ipv6(let source, let destination):
                "PROXY TCP6 \(source.0) \(destination.0) \(source.1) \(destination.1)\r\n"
            case .unix, nil:
                "PROXY UNKNOWN\r\n"
            }
        return Array(text.utf8)
    }

    private var binary: [UInt8] {
        var block: [UInt8] = []
        let family: UInt8
        switch self.pair {
        case .ipv4(let source, let destination):
            family = 0x11
            for address in [source.0, destination.0] { Self.append(address, &block) }
            for port in [source.1, destination.1] { Self.append(port, &block) }
        case .ipv6(let source, let destination):
            family = 0x21
            for case .v6(let high, let low) in [source.0, destination.0] {
                Self.append(high, &block)
                Self.append(low, &block)
            }
            for port in [source.1, destination.1] { Self.append(port, &block) }
        case .unix(let source, let destination):
            family = 0x31
            block = Self.field(source) + Self.field(destination)
        case nil:
            return ProxyHeaderDecoder.signature + [0x20, 0x00, 0x00, 0x00]
        }
        var header = ProxyHeaderDecoder.signature + [0x21, family]
        Self.append(UInt16(truncatingIfNeeded: block.count), &header)
        return header + block
    }

    private enum Pair {
        case ipv4((UInt32, UInt16), (UInt32, UInt16))
        case ipv6((IPAddress, UInt16), (IPAddress, UInt16))
        case unix(String, String)
    }

    private var pair: Pair? {
        guard case .proxied(let source, let destination) = self else { return nil }
        if case .unix(let source) = source, case .unix(let destination) = destination {
            return .unix(source, destination)
        }
        if case .ipv4(let source, let port) = source, case .ipv4(let destination, let other) = destination {
            return .ipv4((source, port), (destination, other))
        }
        guard let source = Self.asIPv6(source), let destination = Self.asIPv6(destination) else { return nil }
        return .ipv6(source, destination)
    }

    /// IPv4 as `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2); `nil` for a Unix socket.
    private static func asIPv6(_ address: SocketAddress) -> (IPAddress, UInt16)? {
        switch address {
        case .ipv4(let bits, let port): (.v6(high: 0, low: 0xFFFF_0000_0000 | UInt64(bits)), port)
        case .ipv6(let high, let low, _, let port): (.v6(high: high, low: low), port)
        case .unix: nil
        }
    }

    private static func append(_ number: some FixedWidthInteger, _ bytes: inout [UInt8]) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    private static func field(_ path: String) -> [UInt8] {
        var bytes = Array(path.utf8.prefix(107))
        // Alone it is a path: an abstract name has at least one byte after the zero.
        if bytes.first == UInt8(ascii: "@"), bytes.count > 1 { bytes[0] = 0 }
        return bytes + [UInt8](repeating: 0, count: 108 - bytes.count)
    }
}

/// The checksum of RFC 3720 §12.1 (Castagnoli's polynomial, reflected), bit by bit: headers are short and rare.
package enum CRC32C {
    /// - Parameter zeroing: range counted as zeros: the checksum itself.
    package static func checksum(of bytes: RawSpan, _ range: Range<Int>, zeroing: Range<Int>) -> UInt32 {
        var remainder = UInt32.max
        for offset in range {
            remainder ^= zeroing.contains(offset) ? 0 : UInt32(bytes[byte: offset])
            for _ in 0..<8 {
                remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82F6_3B78 : remainder >> 1
            }
        }
        return ~remainder
    }
}
