import CLinux

/// What the service manager that started the process told it, and wants to be told (sd_notify(3), sd_listen_fds(3)).
package enum ServiceSupervisor {
    /// Sends `state`, such as `READY=1`, where NOTIFY_SOCKET says; does nothing without it.
    /// - Returns: whether a message was sent.
    @discardableResult
    package static func notify(_ state: String) -> Bool {
        guard let path = Self.environment("NOTIFY_SOCKET"), !path.isEmpty else { return false }
        let descriptor = socket(AF_UNIX, sluice_datagram_type(), 0)
        guard descriptor >= 0 else { return false }
        defer { _ = CLinux.close(descriptor) }
        let bytes = Array(state.utf8)
        let sent = unsafe SocketAddress.unix(path: path).withSockaddr { target, length in
            unsafe bytes.withUnsafeBytes { unsafe sluice_send_to(descriptor, $0.baseAddress, $0.count, target, length) }
        }
        return sent == bytes.count
    }

    /// Says that a reload begins, with the instant that a unit of `Type=notify-reload` wants to hear. `READY=1` ends it.
    @discardableResult
    package static func notifyReloading() -> Bool {
        Self.notify("RELOADING=1\nMONOTONIC_USEC=\(sluice_monotonic_nanoseconds() / 1000)")
    }

    /// How long the service manager waits for the next `WATCHDOG=1` (sd_watchdog_enabled(3)); `nil` where it does not.
    package static var watchdogLimit: Duration? {
        guard let limit = Self.environment("WATCHDOG_USEC").flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let owner = Self.environment("WATCHDOG_PID"), Int32(owner) != getpid() { return nil }
        return .microseconds(limit)
    }

    /// The listening sockets that were passed, with their names (empty where none was given). Each is made non-blocking
    /// and close-on-exec; the variables are taken away, so that a child does not take them for its own.
    package static func takeListeningDescriptors() -> [(name: String, descriptor: Descriptor)] {
        guard let owner = Self.environment("LISTEN_PID").flatMap({ Int32($0) }), owner == getpid(),
            let count = Self.environment("LISTEN_FDS").flatMap({ Int32($0) }), count > 0, count <= 1024
        else { return [] }
        let names = (Self.environment("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { _ = unsafe unsetenv(name) }
        return (0..<count).map { index in
            let number = 3 + index
            sluice_prepare_passed(number)
            let name = Int(index) < names.count ? String(names[Int(index)]) : ""
            return (name, Descriptor(number))
        }
    }

    private static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
