import CLinux

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

    /// What the kernel tells. A socket for both families names IPv4 peers as mapped addresses; they are IPv4 here.
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
