import ByteKernels
import CLinux

/// Where a socket is: an IPv4 or IPv6 address with its port, or the path of a Unix socket.
package enum SocketAddress: Hashable, Sendable {
    /// - Parameter address: the four bytes, the first on the wire highest.
    case ipv4(address: UInt32, port: UInt16)
    /// - Parameters:
    ///   - high: the first eight bytes on the wire; `low`: the last eight.
    ///   - scope: the interface index of a link-local address, else 0.
    case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)
    /// Path of at most 107 bytes; empty for an unnamed socket. A leading `@` means the abstract name space.
    case unix(path: String)

    /// Whether one that listens here may be reached at another address: any of the machine's, or a path with no meaning.
    var isWildcard: Bool {
        switch self {
        case .ipv4(let address, _): address == 0
        case .ipv6(let high, let low, _, _): high == 0 && (low == 0 || low >> 32 == 0xffff)
        case .unix: true
        }
    }

    /// Whether it is that of a Unix socket.
    package var isSocketFile: Bool {
        switch self {
        case .unix: true
        case .ipv4, .ipv6: false
        }
    }

    /// An IPv4 address that is written as IPv6 (`::ffff:a.b.c.d`, RFC 4291 §2.5.5.2) as what it is; else itself.
    package var unmapped: SocketAddress {
        guard case .ipv6(0, let low, _, let port) = self, low >> 32 == 0xFFFF else { return self }
        return .ipv4(address: UInt32(truncatingIfNeeded: low), port: port)
    }

    package var port: UInt16? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, _, _, let port): port
        case .unix: nil
        }
    }
}

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

    package var isIPv4: Bool {
        if case .ipv4 = self { true } else { false }
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

extension SocketAddress {
    var family: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Lends the address in the kernel's form; `nil` when a Unix path is too long for it.
    func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R? {
        var storage = sockaddr_storage()
        let length: socklen_t
        switch self {
        case .ipv4(let address, let port):
            length = unsafe sluice_fill_ipv4(&storage, address, port)
        case .ipv6(let high, let low, let scope, let port):
            length = unsafe sluice_fill_ipv6(&storage, high, low, scope, port)
        case .unix(let path):
            length = unsafe sluice_fill_unix(&storage, path, path.utf8.count)
        }
        guard length > 0 else { return nil }
        return unsafe withUnsafePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
        }
    }

    /// Reads an address returned by the kernel. A dual-stack socket reports IPv4 peers as mapped addresses; they become
    /// IPv4 here.
    init?(_ storage: sockaddr_storage, length: socklen_t) {
        var storage = storage
        switch Int32(storage.ss_family) {
        case AF_INET:
            self = unsafe .ipv4(address: sluice_ipv4_address(&storage), port: sluice_port(&storage))
        case AF_INET6:
            let address = unsafe SocketAddress.ipv6(
                high: sluice_ipv6_half(&storage, 0), low: sluice_ipv6_half(&storage, 1),
                scope: sluice_ipv6_scope(&storage), port: sluice_port(&storage))
            self = address.unmapped
        case AF_UNIX:
            var path: [CChar] = Array(repeating: 0, count: 128)
            unsafe sluice_unix_path(&storage, length, &path)
            let bytes = path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            self = .unix(path: String(decoding: bytes, as: UTF8.self))
        default:
            return nil
        }
    }

    /// An IPv4 or IPv6 address written in digits (`192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`); `nil` for anything else,
    /// names included.
    package init?(literal host: String, port: UInt16) {
        var storage = sockaddr_storage()
        guard unsafe sluice_parse_literal(host, &storage) == 1 else { return nil }
        switch Int32(storage.ss_family) {
        case AF_INET:
            self = unsafe .ipv4(address: sluice_ipv4_address(&storage), port: port)
        default:
            self = unsafe .ipv6(
                high: sluice_ipv6_half(&storage, 0), low: sluice_ipv6_half(&storage, 1),
                scope: sluice_ipv6_scope(&storage), port: port)
        }
    }
}

/// Identity of a Unix socket's file, to distinguish it from a later one at the same path.
package struct SocketFile: Hashable, Sendable {
    package let path: String
    private let device: UInt64
    private let inode: UInt64

    package init(path: String, device: UInt64, inode: UInt64) {
        self.path = path
        self.device = device
        self.inode = inode
    }

    /// - Returns: `nil` where there is none, and for an abstract name.
    init?(at path: String) {
        var (device, inode): (UInt64, UInt64) = (0, 0)
        guard !path.hasPrefix("@"), unsafe sluice_socket_file(path, &device, &inode) == 1 else { return nil }
        self.init(path: path, device: device, inode: inode)
    }

    /// Whether a process listens at `path`; any error but a refusal counts as yes.
    package static func isServed(_ path: String) -> Bool {
        let isFile = unsafe sluice_is_socket_file(path) == 1
        guard isFile || path.hasPrefix("@") else { return false }
        let probe = sluice_stream_socket(AF_UNIX)
        guard probe >= 0 else { return true }
        defer { _ = CLinux.close(probe) }
        let answer = unsafe SocketAddress.unix(path: path).withSockaddr { unsafe sluice_connect(probe, $0, $1) }
        return answer != -1 || sluice_errno() != ECONNREFUSED
    }
}

/// Keeps other processes from opening Unix sockets in the same folder, as long as it lives.
final class FolderLock {
    private let number: Int32

    /// - Returns: `nil` without a lock: the socket is opened anyway.
    init?(ofFile path: String) {
        guard !path.hasPrefix("@") else { return nil }
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        self.number = unsafe sluice_lock_folder(folder)
        guard self.number >= 0 else { return nil }
    }

    deinit {
        if self.number >= 0 { _ = CLinux.close(self.number) }
    }
}
