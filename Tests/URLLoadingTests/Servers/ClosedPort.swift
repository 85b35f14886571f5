import Foundation
import StreamTransport

/// A port of 127.0.0.1 that refuses connections: it is bound, so that no other process gets it, without listening.
final class ClosedPort: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutableBytes(of: &name) { bytes in
            let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            guard let address, bind(descriptor, address, length) == 0 else { return Int32(-1) }
            return getsockname(descriptor, address, &length)
        }
        guard status == 0 else { throw SystemError(errno) }
        self.port = UInt16(bigEndian: name.sin_port)
    }

    deinit {
        close(self.descriptor)
    }

    func url(_ path: String = "/") -> URL {
        URL(string: "http://127.0.0.1:\(self.port)\(path)") ?? URL(filePath: "/")
    }
}
