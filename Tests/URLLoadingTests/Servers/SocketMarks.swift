import Foundation

/// Reads the marks that this process's sockets give to their packets.
enum SocketMarks {
    /// The code points of the sockets that are connected to this port of 127.0.0.1.
    ///
    /// Searches every open descriptor: thousands of tests run in this process, so a socket may have any number.
    static func toward(_ port: Int) -> [UInt8] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { Int32($0) }.sorted().compactMap { descriptor in
            var peer = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutableBytes(of: &peer) { bytes in
                getpeername(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
            }
            guard status == 0, peer.sin_family == sa_family_t(AF_INET), Int(UInt16(bigEndian: peer.sin_port)) == port
            else { return nil }
            var mark: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, Int32(IPPROTO_IP), IP_TOS, &mark, &size) == 0 else { return nil }
            return UInt8(truncatingIfNeeded: mark >> 2)
        }
    }
}
