import ByteKernels
import CLinux

extension SocketAddress: CustomStringConvertible {
    /// The bytes of the longest IPv4 address with its port.
    package static let ipv4Room = 21

    /// `192.0.2.1:80`, `[2001:db8::1]:443`, or `unix:/run/app.sock` (`unix:` alone for a socket without a name).
    package var description: String {
        switch self {
        case .ipv4(let address, let port):
            Self.text { Self.write(ipv4: address, port: port, to: &$0) }
        case .ipv6(_, _, _, let port): "[\(self.host)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// The address without its port; a Unix socket's path.
    package var host: String {
        switch self {
        case .ipv4(let address, _): return Self.text { Self.write(ipv4: address, to: &$0) }
        case .ipv6: break
        case .unix(let path): return path
        }
        var text: [CChar] = Array(repeating: 0, count: 64)
        let formatted = unsafe self.withSockaddr { target, _ in unsafe sluice_format_host(target, &text, 64) }
        guard formatted == 1 else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Writes an IPv4 address with its port, as `description` has it: lists of thousands of connections show two each.
    package static func write(ipv4 address: UInt32, port: UInt16, to output: inout OutputSpan<UInt8>) {
        self.write(ipv4: address, to: &output)
        output.append(UInt8(ascii: ":"))
        output.append(decimal: UInt64(port))
    }

    private static func write(ipv4 address: UInt32, to output: inout OutputSpan<UInt8>) {
        output.append(decimal: UInt64(address >> 24))
        for shift: UInt32 in [16, 8, 0] {
            output.append(UInt8(ascii: "."))
            output.append(decimal: UInt64(address >> shift & 0xFF))
        }
    }

    private static func text(_ write: (inout OutputSpan<UInt8>) -> Void) -> String {
        String(decoding: [UInt8](capacity: Self.ipv4Room, initializingWith: write), as: UTF8.self)
    }
}
