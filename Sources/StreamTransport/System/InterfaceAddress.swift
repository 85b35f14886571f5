import CLinux

/// Addresses of this machine's network interfaces.
package enum InterfaceAddress {
    /// The first IPv4 address of an interface that is up and no loopback; `nil` without one.
    package static var ipv4: String? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return nil }
        defer { unsafe freeifaddrs(list) }
        var entry = unsafe list
        while let current = unsafe entry {
            if let text = unsafe self.ipv4(of: current.pointee) { return text }
            unsafe entry = current.pointee.ifa_next
        }
        return nil
    }

    private static func ipv4(of interface: ifaddrs) -> String? {
        let flags = unsafe interface.ifa_flags
        guard flags & UInt32(IFF_UP) != 0, flags & UInt32(IFF_LOOPBACK) == 0,
            let address = unsafe interface.ifa_addr, unsafe address.pointee.sa_family == sa_family_t(AF_INET)
        else { return nil }
        var storage = sockaddr_storage()
        let length = MemoryLayout<sockaddr_in>.size
        unsafe memcpy(&storage, address, length)
        return SocketAddress(storage, length: socklen_t(length))?.host
    }
}
