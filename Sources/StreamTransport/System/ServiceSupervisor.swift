import CLinux
import Synchronization

/// Environment variables and messages of the service manager (sd_notify(3), sd_listen_fds(3)).
package enum ServiceSupervisor {
    /// Sends `state`, such as `READY=1`, to NOTIFY_SOCKET; does nothing without it. Never waits.
    /// - Throws: the system's error; `EAGAIN` if the service manager has not read earlier messages.
    package static func notify(_ state: String) throws(SystemError) {
        guard let path = Self.environment("NOTIFY_SOCKET"), !path.isEmpty else { return }
        try self.send(state, to: path)
    }

    /// Sends one datagram to a Unix socket, without waiting for its reader.
    package static func send(_ state: String, to path: String) throws(SystemError) {
        let descriptor = socket(AF_UNIX, sluice_datagram_type(), 0)
        guard descriptor >= 0 else { throw .last }
        defer { _ = CLinux.close(descriptor) }
        let bytes = Array(state.utf8)
        let sent = unsafe SocketAddress.unix(path: path).withSockaddr { target, length in
            let count = unsafe bytes.withUnsafeBytes {
                unsafe sluice_send_to(descriptor, $0.baseAddress, $0.count, target, length)
            }
            return count == bytes.count ? 0 : sluice_errno()
        }
        guard sent == 0 else { throw SystemError(sent ?? ENAMETOOLONG) }
    }

    /// Message for the beginning of a reload, with the timestamp that `Type=notify-reload` requires. `READY=1` ends it.
    package static var reloading: String {
        "RELOADING=1\nMONOTONIC_USEC=\(sluice_monotonic_nanoseconds() / 1000)"
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

/// Sends the service's state to the service manager without ever waiting for it. Callable from any thread.
///
/// A state that the service manager does not accept is kept and sent again by `retry()`: only the latest, because it
/// supersedes the others. A `WATCHDOG=1` that it does not accept is dropped; the next one says the same.
package final class ServiceNotifier: Sendable {
    /// Between two warnings about a service manager that accepts nothing.
    package static let warningInterval = Duration.seconds(60)

    private struct State {
        var unsent: String?
        var complainedAt: MonotonicInstant?
    }

    private let state = Mutex(State())
    private let send: @Sendable (String) throws(SystemError) -> Void
    private let clock: @Sendable () -> MonotonicInstant
    private let warn: @Sendable (SystemError) -> Void

    /// - Parameters:
    ///   - complain: called when a state could not be sent, at most once in `warningInterval`.
    ///   - send: sends one message or throws; must not wait.
    package init(
        clock: @escaping @Sendable () -> MonotonicInstant = {
            MonotonicInstant(nanoseconds: sluice_monotonic_nanoseconds())
        },
        complain: @escaping @Sendable (SystemError) -> Void,
        send: @escaping @Sendable (String) throws(SystemError) -> Void = { state throws(SystemError) in
            try ServiceSupervisor.notify(state)
        }
    ) {
        self.clock = clock
        self.warn = complain
        self.send = send
    }

    /// Sends a state such as `READY=1`.
    /// - Returns: whether it was sent; if not, `retry()` sends it.
    @discardableResult
    package func tell(_ state: String) -> Bool {
        self.state.withLock { $0.unsent = state }
        return self.retry()
    }

    /// Sends what could not be sent before.
    /// - Returns: whether nothing is left to be sent.
    @discardableResult
    package func retry() -> Bool {
        let failure = self.state.withLock { state -> SystemError? in
            guard let unsent = state.unsent else { return nil }
            let error = self.attempt(unsent)
            if error == nil { state.unsent = nil }
            return error
        }
        if let failure { self.failed(failure) }
        return failure == nil
    }

    /// Says that the service is alive (`WATCHDOG=1`), after a state that could not be sent before.
    package func notifyWatchdog() {
        guard self.retry() else { return }
        if let error = self.attempt("WATCHDOG=1") { self.failed(error) }
    }

    private func attempt(_ message: String) -> SystemError? {
        do throws(SystemError) {
            try self.send(message)
            return nil
        } catch {
            return error
        }
    }

    private func failed(_ error: SystemError) {
        let now = self.clock()
        let isDue = self.state.withLock { state -> Bool in
            if let last = state.complainedAt, last.advanced(by: Self.warningInterval) > now { return false }
            state.complainedAt = now
            return true
        }
        if isDue { self.warn(error) }
    }
}
