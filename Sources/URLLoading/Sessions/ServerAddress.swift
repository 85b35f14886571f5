import StreamTransport

extension URLSessionConfiguration {
    /// An address that a connection may be made to, before it is made.
    public struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
        package let socketAddress: SocketAddress

        package init(_ address: SocketAddress) {
            self.socketAddress = address
        }

        /// 4 bytes of an IPv4 address, 16 of an IPv6 address, in the order of the wire. An IPv4 address that is mapped into
        /// IPv6 (`::ffff:192.0.2.1`) has 4.
        public var bytes: [UInt8] {
            switch self.socketAddress {
            case .ipv4(let address, _): return Self.bytes(address)
            case .ipv6(0, let low, _, _) where low >> 32 == 0xFFFF:
                return Self.bytes(UInt32(truncatingIfNeeded: low))
            case .ipv6(let high, let low, _, _): return Self.bytes(high) + Self.bytes(low)
            case .unix: return []
            }
        }

        public var port: Int { Int(self.socketAddress.port ?? 0) }

        /// This machine: 127.0.0.0/8, ::1, and the unspecified address, by which Linux reaches it too.
        public var isLoopback: Bool {
            let bytes = self.bytes
            if bytes.count == 4 { return bytes[0] == 127 || bytes.allSatisfy { $0 == 0 } }
            return bytes.dropLast().allSatisfy { $0 == 0 } && (bytes.last ?? 2) < 2
        }

        /// Inside of one network: 169.254.0.0/16 and fe80::/10, where clouds have their metadata services.
        public var isLinkLocal: Bool {
            let bytes = self.bytes
            return bytes.count == 4
                ? bytes[0] == 169 && bytes[1] == 254 : bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        }

        /// For private networks: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918) and fc00::/7 (RFC 4193).
        public var isPrivate: Bool {
            let bytes = self.bytes
            guard bytes.count == 4 else { return bytes.count == 16 && bytes[0] & 0xFE == 0xFC }
            return bytes[0] == 10 || bytes[0] == 172 && bytes[1] & 0xF0 == 16 || bytes[0] == 192 && bytes[1] == 168
        }

        /// `192.0.2.1:443` or `[2001:db8::1]:443`.
        public var description: String { self.socketAddress.description }

        private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
            (1...number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> (number.bitWidth - $0 * 8)) }
        }
    }
}
