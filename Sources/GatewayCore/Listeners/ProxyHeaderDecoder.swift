import ByteKernels
import GatewayConfiguration
import StreamTransport

/// Decodes the PROXY protocol header at the beginning of a connection, version 1 or 2, distinguished by their first
/// bytes.
///
/// Stateless: called again with all bytes from the first on, it returns a result as soon as they suffice, the same for
/// every split. It never asks for more than the limit.
package struct ProxyHeaderDecoder: Sendable {
    /// Version 1 is at most this long, CRLF included (§2.1).
    private static let longestLine = 107
    private static let lineStart = Array("PROXY ".utf8)
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    /// Longest header of version 2, its 16 fixed bytes included.
    package let limit: Int

    /// - Parameter limit: at least 232, so that every address fits; 4096 holds TLVs with names and a certificate too (§2.2).
    package init(limit: Int = 4096) {
        self.limit = max(limit, 16 + 216)
    }

    /// - Parameter bytes: everything received so far.
    package func decode(_ bytes: RawSpan) -> ProxyHeaderResult {
        if Self.agrees(bytes, Self.signature) {
            return bytes.byteCount < Self.signature.count ? .incomplete : self.binary(bytes)
        }
        if Self.agrees(bytes, Self.lineStart) {
            return bytes.byteCount < Self.lineStart.count ? .incomplete : Self.line(bytes)
        }
        return .absent
    }

    /// Whether `bytes` and `start` agree in the bytes that both have.
    private static func agrees(_ bytes: RawSpan, _ start: [UInt8]) -> Bool {
        (0..<min(bytes.byteCount, start.count)).allSatisfy { bytes[byte: $0] == start[$0] }
    }

    // MARK: Version 1

    private static func line(_ bytes: RawSpan) -> ProxyHeaderResult {
        let searched = min(bytes.byteCount, Self.longestLine)
        var end = Self.lineStart.count
        while end < searched, bytes[byte: end] != 0x0D { end += 1 }
        guard end + 1 < searched else {
            return bytes.byteCount >= Self.longestLine ? .violation(.tooLong) : .incomplete
        }
        guard bytes[byte: end + 1] == 0x0A else { return .violation(.malformedLine) }
        let text = [UInt8](bytes.extracting(Self.lineStart.count..<end))
        guard let header = Self.header(of: text) else { return .violation(.malformedLine) }
        return .header(header, length: end + 2)
    }

    private static func header(of line: [UInt8]) -> ProxyHeader? {
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard let family = parts.first else { return nil }
        // Bytes after UNKNOWN are ignored (§2.1).
        if family.elementsEqual("UNKNOWN".utf8) { return .local }
        guard parts.count == 5, let sourcePort = Self.port(parts[3]), let destinationPort = Self.port(parts[4]),
            let source = Self.address(parts[1], family: family, port: sourcePort),
            let destination = Self.address(parts[2], family: family, port: destinationPort)
        else { return nil }
        return .proxied(source: source, destination: destination)
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard digits.count == 1 || digits.first != 0x30 else { return nil }
        return Decimal.port(digits)
    }

    private static func address(_ text: ArraySlice<UInt8>, family: ArraySlice<UInt8>, port: UInt16) -> SocketAddress? {
        let address = AddressText.address(Substring(decoding: text, as: UTF8.self).utf8)
        switch address {
        case .v4(let bits)? where family.elementsEqual("TCP4".utf8): return .ipv4(address: bits, port: port)
        case .v6(let high, let low)? where family.elementsEqual("TCP6".utf8):
            return SocketAddress.ipv6(high: high, low: low, scope: 0, port: port).unmapped
        case .v4?, .v6?, nil: return nil
        }
    }

    // MARK: Version 2

    private func binary(_ bytes: RawSpan) -> ProxyHeaderResult {
        guard bytes.byteCount > 12 else { return .incomplete }
        let command = bytes[byte: 12]
        guard command == 0x20 || command == 0x21 else { return .violation(.unknownFields) }
        guard bytes.byteCount > 13 else { return .incomplete }
        let (family, kind) = (bytes[byte: 13] >> 4, bytes[byte: 13] & 0xF)
        guard family <= 3, kind <= 2 else { return .violation(.unknownFields) }
        guard bytes.byteCount >= 16 else { return .incomplete }
        let length = 16 + Int(bytes[byte: 14]) << 8 + Int(bytes[byte: 15])
        guard length <= self.limit else { return .violation(.tooLong) }
        guard command == 0x21 else { return bytes.byteCount < length ? .incomplete : .header(.local, length: length) }
        let addressEnd = 16 + [0, 12, 36, 216][Int(family)]
        guard length >= addressEnd else { return .violation(.malformedLength) }
        guard bytes.byteCount >= length else { return .incomplete }
        if let violation = Self.violation(inExtensions: addressEnd..<length, of: bytes) { return .violation(violation) }
        // This connection carries no datagrams; their addresses are skipped like unknown ones.
        guard kind == 1, let header = Self.addresses(family, bytes) else { return .header(.local, length: length) }
        return .header(header, length: length)
    }

    private static func addresses(_ family: UInt8, _ bytes: RawSpan) -> ProxyHeader? {
        switch family {
        case 1:
            return .proxied(
                source: .ipv4(address: Self.integer(bytes, 16, 4), port: Self.integer(bytes, 24, 2)),
                destination: .ipv4(address: Self.integer(bytes, 20, 4), port: Self.integer(bytes, 26, 2)))
        case 2:
            return .proxied(
                source: Self.ipv6(bytes, 16, port: Self.integer(bytes, 48, 2)),
                destination: Self.ipv6(bytes, 32, port: Self.integer(bytes, 50, 2)))
        case 3:
            return .proxied(source: Self.unix(bytes, 16), destination: Self.unix(bytes, 16 + 108))
        default:
            return nil
        }
    }

    private static func ipv6(_ bytes: RawSpan, _ start: Int, port: UInt16) -> SocketAddress {
        let (high, low): (UInt64, UInt64) = (Self.integer(bytes, start, 8), Self.integer(bytes, start + 8, 8))
        return SocketAddress.ipv6(high: high, low: low, scope: 0, port: port).unmapped
    }

    /// A path ends with its first zero byte; one that begins with zero is of the abstract name space.
    private static func unix(_ bytes: RawSpan, _ start: Int) -> SocketAddress {
        let field = [UInt8](bytes.extracting(start..<start + 107))
        let isAbstract = field[0] == 0 && field[1] != 0
        let path = (isAbstract ? field.dropFirst() : field[...]).prefix { $0 != 0 }
        return .unix(path: (isAbstract ? "@" : "") + String(decoding: path, as: UTF8.self))
    }

    private static func integer<Number: FixedWidthInteger>(_ bytes: RawSpan, _ start: Int, _ count: Int) -> Number {
        (start..<start + count).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: bytes[byte: $1]) }
    }

    /// TLVs are skipped, but must fit, and a checksum must be right (§2.2.3).
    private static func violation(inExtensions range: Range<Int>, of bytes: RawSpan) -> ProxyHeaderViolation? {
        var start = range.lowerBound
        while start < range.upperBound {
            guard range.upperBound - start >= 3 else { return .malformedLength }
            let count: Int = Self.integer(bytes, start + 1, 2)
            let value = start + 3
            guard count <= range.upperBound - value else { return .malformedLength }
            if bytes[byte: start] == 0x03 {
                guard count == 4 else { return .malformedLength }
                let stated: UInt32 = Self.integer(bytes, value, 4)
                guard stated == CRC32C.checksum(of: bytes, 0..<range.upperBound, zeroing: value..<value + 4) else {
                    return .wrongChecksum
                }
            }
            start = value + count
        }
        return nil
    }
}

/// Result of decoding the first bytes of a connection.
package enum ProxyHeaderResult: Hashable, Sendable {
    /// The header may be incomplete: decode again with more bytes appended.
    case incomplete
    /// No header: the bytes are the connection's own.
    case absent
    /// A header of `length` bytes; what follows is the connection's own.
    case header(ProxyHeader, length: Int)
    case violation(ProxyHeaderViolation)
}

/// Bytes that begin like a PROXY protocol header but are none. The connection is reset, as the specification demands.
package enum ProxyHeaderViolation: String, Error, Hashable, Sendable {
    /// Longer than the limit, or a version 1 line without its end in 107 bytes.
    case tooLong = "too-long"
    /// A version 1 line that does not match the grammar.
    case malformedLine = "malformed-line"
    /// Version 2 with another version, command, family or protocol than those defined.
    case unknownFields = "unknown-fields"
    /// Version 2 too short for its addresses, or with a TLV that goes beyond the end.
    case malformedLength = "malformed-length"
    /// Version 2 with a CRC-32C that does not fit.
    case wrongChecksum = "wrong-checksum"
}
