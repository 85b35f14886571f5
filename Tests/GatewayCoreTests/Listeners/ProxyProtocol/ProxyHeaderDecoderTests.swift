import ByteKernels
import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("PROXY protocol header, proxy-protocol.txt §2")
struct ProxyHeaderDecoderTests {
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let header: ProxyHeader

        init(_ name: String, _ bytes: [UInt8], _ header: ProxyHeader) {
            self.testDescription = name
            self.bytes = bytes
            self.header = header
        }

        init(_ line: String, _ header: ProxyHeader) {
            self.init(line, Array(line.utf8) + [0x0D, 0x0A], header)
        }
    }

    private static func v4(_ source: UInt32, _ port: UInt16, _ destination: UInt32, _ other: UInt16) -> ProxyHeader {
        .proxied(source: .ipv4(address: source, port: port), destination: .ipv4(address: destination, port: other))
    }

    private static let allOnes = SocketAddress.ipv6(high: .max, low: .max, scope: 0, port: 65535)
    /// RFC 4291 §2.5.5.2.
    @Test(arguments: [
        Array("PROXY TCP6 ::ffff:192.0.2.7 ::ffff:c000:201 4711 80\r\n".utf8),
        Self.signature + [0x21, 0x21, 0, 36] + Self.mapped(7) + Self.mapped(1) + [0x12, 0x67, 0, 80],
    ])
    func ipv4MappedAddressIsReadAsIPv4(_ bytes: [UInt8]) {
        let header = ProxyHeader.proxied(
            source: .ipv4(address: 0xC000_0207, port: 4711), destination: .ipv4(address: 0xC000_0201, port: 80))
        let decoder = ProxyHeaderDecoder()
        #expect(decoder.decode(bytes.span.bytes) == .header(header, length: bytes.count))
    }

    private static func mapped(_ last: UInt8) -> [UInt8] {
        [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, last]
    }

    private static let longest = Array(repeating: "ffff", count: 8).joined(separator: ":")

    static let vectors: [Vector] = [
        Vector("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443", v4(0xC0A8_0001, 56324, 0xC0A8_000B, 443)),
        Vector("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535", v4(.max, 65535, .max, 65535)),
        Vector("PROXY TCP4 1.2.3.4 5.6.7.8 0 0", v4(0x0102_0304, 0, 0x0506_0708, 0)),
        Vector("PROXY TCP6 \(longest) \(longest) 65535 65535", .proxied(source: allOnes, destination: allOnes)),
        Vector(
            "PROXY TCP6 2001:db8::1 ::1 4000 80",
            .proxied(
                source: .ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 4000),
                destination: .ipv6(high: 0, low: 1, scope: 0, port: 80))),
        Vector("PROXY UNKNOWN", .local),
        Vector("PROXY UNKNOWN \(longest) \(longest) 65535 65535", .local),
        Vector("LOCAL", signature + [0x20, 0x00, 0, 0], .local),
        Vector("LOCAL with a block to skip", signature + [0x20, 0x11, 0, 5, 1, 2, 3, 4, 5], .local),
        Vector("unspecified family", signature + [0x21, 0x00, 0, 3, 0x04, 0, 0], .local),
        Vector(
            "TCP over IPv4", signature + [0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB],
            v4(0xC000_0201, 0x1234, 0xC633_6402, 443)),
        Vector(
            "UDP over IPv4 cannot be this connection",
            signature + [0x21, 0x12, 0, 12, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB], .local),
        Vector(
            "TCP over IPv6",
            signature + [0x21, 0x21, 0, 36] + [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]
                + [UInt8](repeating: 0, count: 15) + [1] + [0xC0, 0x00, 0x00, 0x50],
            .proxied(
                source: .ipv6(high: 0x2001_0DB8_0000_0000, low: 7, scope: 0, port: 0xC000),
                destination: .ipv6(high: 0, low: 1, scope: 0, port: 80))),
        Vector(
            "Unix sockets", signature + [0x21, 0x31, 0, 216] + unix("/run/a") + unix("/b"),
            .proxied(source: .unix(path: "/run/a"), destination: .unix(path: "/b"))),
        Vector(
            "Unix sockets, abstract and nameless", signature + [0x21, 0x31, 0, 216] + unix("\u{0}app") + unix(""),
            .proxied(source: .unix(path: "@app"), destination: .unix(path: ""))),
        Vector(
            "Unix sockets, a path of one @", signature + [0x21, 0x31, 0, 216] + unix("@") + unix("/b"),
            .proxied(source: .unix(path: "@"), destination: .unix(path: "/b"))),
        Vector(
            "TLVs: authority, a checksum made elsewhere, nothing",
            signature + [
                0x21, 0x11, 0x00, 0x1D, 0xC0, 0x00, 0x02, 0x07, 0xC6, 0x33, 0x64, 0x09, 0xC8, 0x22, 0x01, 0xBB,
            ]
                + [
                    0x02, 0x00, 0x03, 0x61, 0x2E, 0x62, 0x03, 0x00, 0x04, 0x8E, 0x6E, 0x80, 0x98, 0x04, 0x00, 0x01,
                    0x00,
                ],
            v4(0xC000_0207, 51234, 0xC633_6409, 443)),
    ]

    static func unix(_ path: String) -> [UInt8] {
        Array(path.utf8) + [UInt8](repeating: 0, count: 108 - path.utf8.count)
    }

    private static func decode(_ bytes: [UInt8], limit: Int = 536) -> ProxyHeaderResult {
        bytes.withRawSpan { ProxyHeaderDecoder(limit: limit).decode($0) }
    }

    @Test(arguments: vectors)
    func formsOfTheSpecificationAreDecoded(_ vector: Vector) {
        let expected = ProxyHeaderResult.header(vector.header, length: vector.bytes.count)
        for count in 1..<vector.bytes.count {
            #expect(Self.decode(Array(vector.bytes.prefix(count))) == .incomplete, "\(count) bytes")
        }
        #expect(Self.decode(vector.bytes) == expected)
        #expect(Self.decode(vector.bytes + Array("GET / HTTP/1.1\r\n".utf8)) == expected)
    }

    @Test(arguments: vectors)
    func encodedProxyHeaderDecodes(_ vector: Vector) {
        for version in ProxyProtocolVersion.allCases {
            let bytes = vector.header.encoded(version)
            if case .proxied(.unix, .unix) = vector.header, version == .v1 {
                #expect(bytes == Array("PROXY UNKNOWN\r\n".utf8))
            } else {
                #expect(Self.decode(bytes) == .header(vector.header, length: bytes.count))
            }
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\n", "\u{16}\u{3}\u{1}", "PROXZ", "PROXYTCP4", "proxy TCP4", " PROXY", "\r\n\r\nX",
        "\r\n\r\n\u{0}\r\nQUIX",
    ])
    func bytesOfAnotherProtocolAreNoHeader(_ text: String) {
        #expect(Self.decode(Array(text.utf8)) == .absent)
    }

    @Test(arguments: [
        "PROXY \r\n", "PROXY TCP4\r\n", "PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n",
        "PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY TCP6 ::1%lo ::1 1 2\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\rX", "PROXY tcp4 1.2.3.4 5.6.7.8 1 2\r\n",
    ])
    func lineOutsideTheGrammarIsRefused(_ line: String) {
        #expect(Self.decode(Array(line.utf8)) == .violation(.malformedLine))
    }

    @Test func lineWithoutAnEndIn107BytesIsRefused() {
        let line = Array("PROXY UNKNOWN ".utf8) + [UInt8](repeating: 0x61, count: 200)
        #expect(Self.decode(Array(line.prefix(106))) == .incomplete)
        #expect(Self.decode(Array(line.prefix(107))) == .violation(.tooLong))
        let exact = Array("PROXY UNKNOWN ".utf8) + [UInt8](repeating: 0x61, count: 91) + [0x0D, 0x0A]
        #expect(exact.count == 107 && Self.decode(exact) == .header(.local, length: 107))
        let over = Array("PROXY UNKNOWN ".utf8) + [UInt8](repeating: 0x61, count: 92) + [0x0D, 0x0A]
        #expect(Self.decode(over) == .violation(.tooLong))
    }

    @Test(
        arguments: [
            ([0x11], .unknownFields), ([0x31], .unknownFields), ([0x22], .unknownFields),
            ([0x21, 0x41], .unknownFields),
            ([0x21, 0x13], .unknownFields), ([0x21, 0x11, 0x02, 0x09], .tooLong), ([0x20, 0x00, 0xFF, 0xFF], .tooLong),
            ([0x21, 0x11, 0, 11], .malformedLength), ([0x21, 0x21, 0, 35], .malformedLength),
            ([0x21, 0x31, 0, 215], .malformedLength),
            ([0x21, 0x00, 0, 2, 4, 0], .malformedLength), ([0x21, 0x00, 0, 4, 4, 0, 2, 0], .malformedLength),
            ([0x21, 0x00, 0, 6, 3, 0, 3, 0, 0, 0], .malformedLength),
            ([0x21, 0x00, 0, 7, 3, 0, 4, 0, 0, 0, 0], .wrongChecksum),
        ] as [([UInt8], ProxyHeaderViolation)])
    func undefinedVersion2HeaderIsRefused(_ rest: [UInt8], _ violation: ProxyHeaderViolation) {
        #expect(Self.decode(Self.signature + rest) == .violation(violation))
    }

    /// As of load balancers that pass a client's certificate on.
    @Test func headerMayHaveTLVsUpTo4096Bytes() {
        func header(_ length: Int) -> [UInt8] {
            let value = length - 16 - 12 - 3
            return Self.signature + [0x21, 0x11, UInt8((length - 16) >> 8), UInt8((length - 16) & 0xFF)]
                + [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB]
                + [0x20, UInt8(value >> 8), UInt8(value & 0xFF)] + [UInt8](repeating: 0x61, count: value)
        }
        func decoded(_ bytes: [UInt8]) -> ProxyHeaderResult { bytes.withRawSpan { ProxyHeaderDecoder().decode($0) } }
        let longest = header(4096)
        #expect(decoded(longest.dropLast()) == .incomplete)
        let known = ProxyHeader.proxied(
            source: .ipv4(address: 0xC000_0201, port: 0x1234), destination: .ipv4(address: 0xC633_6402, port: 443))
        #expect(decoded(longest) == .header(known, length: 4096))
        #expect(decoded(Array(header(4097).prefix(16))) == .violation(.tooLong))
    }

    @Test func everyFlippedBitOfACheckedHeaderIsNoticed() {
        guard let vector = Self.vectors.last else { return }
        for offset in 16..<vector.bytes.count {
            for bit in 0..<8 {
                var bytes = vector.bytes
                bytes[offset] ^= 1 << UInt8(bit)
                let answer = Self.decode(bytes)
                // The TLV's own type, once another, is skipped unread.
                if offset == 34 { continue }
                guard case .violation = answer else {
                    Issue.record("byte \(offset), bit \(bit): \(answer)")
                    continue
                }
            }
        }
    }

    @Test(arguments: 0..<120 as Range<UInt64>)
    func theAnswerIsTheSameForEveryCutAndWithinTheLimit(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Self.vectors[Int.random(in: 0..<Self.vectors.count, using: &random)].bytes + random.bytes(40)
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        bytes += random.bytes(600)
        var settled: ProxyHeaderResult?
        for count in 1...bytes.count {
            let answer = Self.decode(Array(bytes.prefix(count)))
            if let settled {
                #expect(answer == settled, "seed \(seed), \(count) bytes")
            } else if answer != .incomplete {
                settled = answer
                #expect(count <= 536, "seed \(seed)")
                if case .header(_, let length) = answer { #expect(length == count, "seed \(seed)") }
            }
        }
        #expect(settled != nil, "seed \(seed)")
    }

    @Test func checksumsAreThoseOfTheRFC() {
        func checksum(_ bytes: [UInt8]) -> UInt32 {
            bytes.withRawSpan { CRC32C.checksum(of: $0, 0..<bytes.count, zeroing: 0..<0) }
        }
        // RFC 3720 §B.4, read as little-endian.
        #expect(checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(checksum(Array(0..<32)) == 0x46DD_794E)
        #expect(checksum(Array((0..<32).reversed())) == 0x113F_DB5C)
    }
}
