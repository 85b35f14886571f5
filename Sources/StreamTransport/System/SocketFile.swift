import CLinux

/// The file of a Unix socket.
package enum SocketFile {
    /// Whether a process listens at `path`, as far as can be told: only a refusal says that none does.
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
