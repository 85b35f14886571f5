import ByteKernels
import CLinux

/// The real thing: one epoll set and one eventfd per loop.
@safe
package final class LinuxSystem: System {
    /// The token of the eventfd; loops never hand it out.
    private static let wakeToken = UInt64.max

    private let poller: Int32
    private let waker: Int32
    private let found: UnsafeMutablePointer<epoll_event>
    private let resolutions: PendingResolutions
    let reserve: DescriptorReserve
    /// Made by the first bulk.
    private var splicePipe: SplicePipe?

    /// - Throws: `SystemError` when the process has no descriptors left.
    package init(resolver: ResolverThreads = .shared, reserve: DescriptorReserve = .process) throws(SystemError) {
        self.reserve = reserve
        let poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard poller >= 0 else { throw SystemError.last }
        let waker = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard waker >= 0 else {
            let error = SystemError.last
            _ = CLinux.close(poller)
            throw error
        }
        self.poller = poller
        self.waker = waker
        unsafe self.found = .allocate(capacity: ReadyEvents.capacity)
        self.resolutions = PendingResolutions(resolver: resolver, waker: waker)
        // Edge-triggered: each write is reported once, and the count need not be read.
        let interest = EPOLLIN.rawValue | EPOLLET.rawValue
        var event = unsafe epoll_event(events: interest, data: epoll_data(u64: Self.wakeToken))
        _ = unsafe epoll_ctl(poller, EPOLL_CTL_ADD, waker, &event)
    }

    deinit {
        self.resolutions.abandon()
        _ = CLinux.close(self.waker)
        _ = CLinux.close(self.poller)
        unsafe self.found.deallocate()
    }

    package func now() -> MonotonicInstant {
        MonotonicInstant(nanoseconds: sluice_monotonic_nanoseconds())
    }

    package func wake() {
        _ = eventfd_write(self.waker, 1)
    }

    package func wait(_ events: inout ReadyEvents, until deadline: MonotonicInstant?) {
        events.removeAll()
        let count = unsafe sluice_poll(
            self.poller, self.found, Int32(ReadyEvents.capacity), self.milliseconds(until: deadline))
        guard count > 0 else { return }
        for index in 0..<Int(count) {
            let event = unsafe self.found[index]
            guard unsafe event.data.u64 != Self.wakeToken else {
                self.resolutions.deliver()
                continue
            }
            events.append(unsafe .init(token: event.data.u64, ready: Interest(epoll: event.events)))
        }
    }

    /// Rounded up, so that a wait never ends just short of its deadline and spins.
    private func milliseconds(until deadline: MonotonicInstant?) -> Int32 {
        guard let deadline else { return -1 }
        let left = deadline.nanoseconds.subtractingReportingOverflow(self.now().nanoseconds)
        if left.overflow { return Int32.max }
        if left.partialValue <= 0 { return 0 }
        return Int32(clamping: (left.partialValue - 1) / 1_000_000 + 1)
    }

    package func watch(_ descriptor: Descriptor, for interest: Interest, token: UInt64) -> SystemError? {
        var event = unsafe epoll_event(events: interest.epoll, data: epoll_data(u64: token))
        return unsafe epoll_ctl(self.poller, EPOLL_CTL_ADD, descriptor.number, &event) == 0 ? nil : .last
    }

    package func rewatch(_ descriptor: Descriptor, for interest: Interest, token: UInt64) {
        var event = unsafe epoll_event(events: interest.epoll, data: epoll_data(u64: token))
        _ = unsafe epoll_ctl(self.poller, EPOLL_CTL_MOD, descriptor.number, &event)
    }

    package func unwatch(_ descriptor: Descriptor) {
        var event = unsafe epoll_event()
        _ = unsafe epoll_ctl(self.poller, EPOLL_CTL_DEL, descriptor.number, &event)
    }

    package func resolve(
        _ host: String, port: UInt16, completion: @escaping (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) -> ResolutionToken {
        self.resolutions.resolve(host, port: port, completion: completion)
    }

    package func cancelResolution(_ ticket: ResolutionToken) {
        self.resolutions.cancel(ticket)
    }
}

extension Interest {
    fileprivate var epoll: UInt32 {
        (self.contains(.readable) ? EPOLLIN.rawValue : 0) | (self.contains(.writable) ? EPOLLOUT.rawValue : 0)
    }

    fileprivate init(epoll events: UInt32) {
        var interest: Interest = []
        if events & EPOLLIN.rawValue != 0 { interest.insert(.readable) }
        if events & EPOLLOUT.rawValue != 0 { interest.insert(.writable) }
        if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { interest.insert(.hangUp) }
        self = interest
    }
}

extension LinuxSystem {
    package func listen(_ address: SocketAddress, options: ListenOptions) -> Result<Descriptor, SystemError> {
        let opened = sluice_stream_socket(address.family)
        guard opened >= 0 else { return .failure(self.refused(.last)) }
        guard self.reserve.admitsInner(opened) else {
            _ = CLinux.close(opened)
            return .failure(.processDescriptorsExhausted)
        }
        // Until it listens, another process would take its file for a stale one.
        let lock: FolderLock? = if case .unix(let path) = address { FolderLock(ofFile: path) } else { nil }
        let failure = withExtendedLifetime(lock) { Self.prepare(opened, for: address, options: options) }
        if let failure {
            _ = CLinux.close(opened)
            return .failure(failure)
        }
        return .success(Descriptor(opened))
    }

    private static func prepare(_ opened: Int32, for address: SocketAddress, options: ListenOptions) -> SystemError? {
        if case .unix(let path) = address {
            Self.removeStaleSocket(path)
        } else {
            Self.set(opened, SOL_SOCKET, SO_REUSEADDR, 1)
            if options.portSharing == .join { Self.set(opened, SOL_SOCKET, SO_REUSEPORT, 1) }
            if case .ipv6 = address {
                Self.set(opened, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.dualStack ? 0 : 1)
            }
        }
        guard let bound = unsafe address.withSockaddr({ unsafe sluice_bind(opened, $0, $1) }) else {
            return SystemError(ENAMETOOLONG)
        }
        guard bound == 0 else { return Self.bindFailure(.last, address) }
        if case .unix(let path) = address, !path.hasPrefix("@") {
            guard unsafe chmod(path, options.mode) == 0 else { return .last }
        }
        guard CLinux.listen(opened, options.backlog) == 0 else { return .last }
        // Not sooner: while it neither listens nor shares, any other socket there makes bind(2) or listen(2) fail, that of
        // a process that starts at the same time too.
        if options.portSharing == .begin { Self.set(opened, SOL_SOCKET, SO_REUSEPORT, 1) }
        return nil
    }

    /// "Address in use" is also the answer for a path where there is a file of another kind, or a link.
    private static func bindFailure(_ error: SystemError, _ address: SocketAddress) -> SystemError {
        guard error == .addressInUse, case .unix(let path) = address, !path.hasPrefix("@") else { return error }
        return unsafe sluice_is_socket_file(path) == 1 ? error : .notSocket
    }

    /// A socket file left by a process that died would make every restart fail.
    private static func removeStaleSocket(_ path: String) {
        guard !path.hasPrefix("@"), unsafe sluice_is_socket_file(path) == 1, !SocketFile.isServed(path) else { return }
        _ = unsafe unlink(path)
    }

    package func accept(_ listener: Descriptor) -> Result<AcceptedSocket, SystemError> {
        guard self.reserve.hasCapacity else { return .failure(.processDescriptorsExhausted) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let accepted = unsafe sluice_accept(listener.number, &storage, &length)
        guard accepted >= 0 else { return .failure(self.refused(.last)) }
        // One that came too far is served; the next waits in the kernel's queue.
        _ = self.reserve.admits(accepted)
        let peer = SocketAddress(storage, length: length)
        return .success(AcceptedSocket(descriptor: Descriptor(accepted), peer: peer ?? .unix(path: "")))
    }

    /// Passes the system's error on, and reports it to the reserve.
    private func refused(_ error: SystemError) -> SystemError {
        if error == .processDescriptorsExhausted { self.reserve.exhausted() }
        return error
    }

    package var hasDescriptors: Bool { self.reserve.isAvailable() }

    package func connect(_ address: SocketAddress, _ options: ConnectOptions) -> Result<Descriptor, SystemError> {
        guard self.reserve.hasCapacity else { return .failure(.processDescriptorsExhausted) }
        let opened = Self.socket(for: address, options)
        guard opened >= 0 else { return .failure(self.refused(.last)) }
        guard self.reserve.admits(opened) else {
            _ = CLinux.close(opened)
            return .failure(.processDescriptorsExhausted)
        }
        if let interface = options.interface, sluice_bind_to_interface(opened, Int32(clamping: interface)) != 0 {
            let error = SystemError.last
            _ = CLinux.close(opened)
            return .failure(error)
        }
        let outcome = unsafe address.withSockaddr { target, length in
            unsafe sluice_connect(opened, target, length) == 0 ? Int32(0) : sluice_errno()
        }
        switch outcome {
        case 0, EINPROGRESS, EINTR: return .success(Descriptor(opened))
        case let number:
            _ = CLinux.close(opened)
            return .failure(Self.connectFailure(SystemError(number ?? ENAMETOOLONG), address))
        }
    }

    private static func socket(for address: SocketAddress, _ options: ConnectOptions) -> Int32 {
        if options.usesMultipath, !address.isSocketFile {
            let opened = sluice_multipath_socket(address.family)
            if opened >= 0 { return opened }
        }
        return sluice_stream_socket(address.family)
    }

    /// Distinguishes causes that Linux reports with one error number.
    private static func connectFailure(_ error: SystemError, _ address: SocketAddress) -> SystemError {
        switch (error, address) {
        // "Refused" is also the answer of a file that is no socket.
        case (.refused, .unix(let path)) where !path.hasPrefix("@"):
            unsafe sluice_is_other_file(path) == 1 ? .notSocket : error
        // "Address not available": no local port is free, or no address of ours reaches the target.
        case (.addressNotAvailable, .ipv4), (.addressNotAvailable, .ipv6):
            self.hasSource(for: address) ? error : .networkUnreachable
        default: error
        }
    }

    /// Connecting a datagram socket chooses the source address and sends nothing.
    private static func hasSource(for address: SocketAddress) -> Bool {
        let probe = CLinux.socket(address.family, sluice_datagram_type(), 0)
        guard probe >= 0 else { return true }
        defer { _ = CLinux.close(probe) }
        return unsafe address.withSockaddr { unsafe sluice_connect(probe, $0, $1) } == 0
    }

    package func connectError(_ descriptor: Descriptor) -> SystemError? {
        var number: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor.number, SOL_SOCKET, SO_ERROR, &number, &length) == 0 else { return .last }
        return number == 0 ? nil : SystemError(number)
    }

    package func receive(_ descriptor: Descriptor, into buffer: inout MutableRawSpan) -> Int {
        unsafe buffer.withUnsafeMutableBytes { bytes in
            let count = unsafe sluice_receive(descriptor.number, bytes.baseAddress, bytes.count)
            return count >= 0 ? count : -Int(sluice_errno())
        }
    }

    package func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int {
        unsafe bytes.withUnsafeBytes { buffer in
            let count = unsafe sluice_send(descriptor.number, buffer.baseAddress, buffer.count)
            return count >= 0 ? count : -Int(sluice_errno())
        }
    }

    package func send(_ descriptor: Descriptor, _ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        unsafe bytes.withUnsafeBytes { buffer in
            let count = unsafe sluice_send_behind(
                descriptor.number, head.bits.littleEndian, head.count, buffer.baseAddress, buffer.count)
            return count >= 0 ? count : -Int(sluice_errno())
        }
    }

    package func send(_ descriptor: Descriptor, pieces: [[UInt8]], skipping: Int) -> Int {
        var vectors = unsafe [iovec]()
        for (index, piece) in pieces.enumerated() {
            // `pieces` holds every array until the call is over, so the addresses stay good.
            unsafe piece.withUnsafeBytes { bytes in
                let start = index == 0 ? min(skipping, bytes.count) : 0
                let address = unsafe bytes.baseAddress.map { unsafe UnsafeMutableRawPointer(mutating: $0 + start) }
                unsafe vectors.append(iovec(iov_base: address, iov_len: bytes.count - start))
            }
        }
        let count = unsafe vectors.withUnsafeMutableBufferPointer { buffer in
            var message = unsafe msghdr()
            unsafe message.msg_iov = buffer.baseAddress
            unsafe message.msg_iovlen = buffer.count
            return unsafe sluice_send_message(descriptor.number, &message)
        }
        return count >= 0 ? count : -Int(sluice_errno())
    }

    /// Less is copied as fast.
    package var spliceThreshold: Int { 32 << 10 }

    package func splice(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> SplicedBytes? {
        if self.splicePipe == nil { self.splicePipe = SplicePipe(self.reserve) }
        return self.splicePipe?.pass(source, to: target, atMost: count)
    }

    package func drainSplicePipe(into buffer: inout MutableRawSpan) -> Int {
        self.splicePipe?.take(into: &buffer) ?? 0
    }

    package func sendFile(_ file: OpenFile, from offset: Int64, atMost count: Int, to target: Descriptor) -> Int? {
        guard Self.ignoresBrokenPipes else { return nil }
        let sent = sluice_send_file(target.number, file.number, offset, count)
        // Whatever failed, the socket's own calls or the next read of the file report it.
        return sent >= 0 ? sent : nil
    }

    /// As the process has set it before its first loop.
    private static let ignoresBrokenPipes = sluice_ignores_broken_pipes() == 1

    package func shutdownOutput(_ descriptor: Descriptor) -> SystemError? {
        shutdown(descriptor.number, Int32(SHUT_WR)) == 0 ? nil : .last
    }

    package func shutdownInput(_ descriptor: Descriptor) -> SystemError? {
        shutdown(descriptor.number, Int32(SHUT_RD)) == 0 ? nil : .last
    }

    package func close(_ descriptor: Descriptor) {
        _ = CLinux.close(descriptor.number)
    }

    package func reset(_ descriptor: Descriptor) {
        var now = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(descriptor.number, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        _ = CLinux.close(descriptor.number)
    }

    package func localAddress(_ descriptor: Descriptor) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard unsafe sluice_getsockname(descriptor.number, &storage, &length) == 0 else { return nil }
        return SocketAddress(storage, length: length)
    }

    package func peerAddress(_ descriptor: Descriptor) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard unsafe sluice_getpeername(descriptor.number, &storage, &length) == 0 else { return nil }
        return SocketAddress(storage, length: length)
    }

    package func apply(_ options: SocketOptions, to descriptor: Descriptor) -> SystemError? {
        guard let own = self.localAddress(descriptor) else { return nil }
        if case .unix = own { return nil }
        let tcp = Int32(IPPROTO_TCP)
        // Small writes leave at once.
        Self.set(descriptor.number, tcp, TCP_NODELAY, 1)
        Self.set(descriptor.number, SOL_SOCKET, SO_KEEPALIVE, options.keepAliveIdle == nil ? 0 : 1)
        if let idle = options.keepAliveIdle {
            Self.set(descriptor.number, tcp, TCP_KEEPIDLE, Self.seconds(idle))
            Self.set(descriptor.number, tcp, TCP_KEEPINTVL, Self.seconds(options.keepAliveInterval))
            Self.set(descriptor.number, tcp, TCP_KEEPCNT, options.keepAliveProbes)
        }
        self.setUserTimeout(options.userTimeout, of: descriptor)
        if let mark = options.trafficClass?.socketOption(toward: own) {
            Self.set(descriptor.number, mark.level, mark.name, mark.value)
        }
        return nil
    }

    package func setUserTimeout(_ timeout: Duration?, of descriptor: Descriptor) {
        let patience = timeout.map { Int32(clamping: max(1, $0.clampedNanoseconds / 1_000_000)) } ?? 0
        Self.set(descriptor.number, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, patience)
    }

    package func setUnsentLimit(_ limit: Int, of descriptor: Descriptor) {
        Self.set(descriptor.number, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Int32(clamping: limit))
    }

    package func hasUnreadInput(_ descriptor: Descriptor) -> Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor.number, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    package func unacknowledgedBytes(of descriptor: Descriptor) -> Int? {
        let count = sluice_unacknowledged(descriptor.number)
        return count >= 0 ? Int(count) : nil
    }

    package func outputHold(of descriptor: Descriptor) -> OutputHold? {
        var unsent: Int64 = 0
        var window: Int64 = 0
        unsafe sluice_output_information(descriptor.number, &unsent, &window)
        return unsent >= 0 && window >= 0 ? OutputHold(unsent: Int(unsent), window: Int(window)) : nil
    }

    private static func seconds(_ duration: Duration) -> Int32 {
        Int32(clamping: max(1, duration.components.seconds))
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// Options of one connection, or of all that a listener takes. `nil` is off.
package struct SocketOptions: Hashable, Sendable {
    /// Idle time before the first TCP keep-alive probe; `nil` sends none.
    package var keepAliveIdle: Duration? = .seconds(60)
    /// Between probes, in whole seconds of at least 1.
    package var keepAliveInterval: Duration = .seconds(15)
    /// Unanswered probes before the connection ends.
    package var keepAliveProbes: Int32 = 4
    /// How long sent bytes may stay unacknowledged before the connection ends (`TCP_USER_TIMEOUT`). Applied only while
    /// there may be such bytes: see `UserTimeoutSweep`.
    package var userTimeout: Duration?
    /// Marks packets (`IP_TOS`, `IPV6_TCLASS`); `nil` leaves the default.
    package var trafficClass: TrafficClass?

    package init() {}
}

/// Why a TCP connection's output does not progress.
package struct OutputHold: Equatable, Sendable {
    /// Bytes that the kernel took and has not sent yet.
    package var unsent: Int
    /// The peer's last announced receive window, in bytes.
    package var window: Int

    package init(unsent: Int, window: Int) {
        self.unsent = unsent
        self.window = window
    }
}

/// How a listening socket is opened.
package struct ListenOptions: Hashable, Sendable {
    /// Connections that may wait to be accepted; the kernel holds it to net.core.somaxconn.
    package var backlog: Int32 = 4096
    /// Whether several sockets may listen on the same TCP address, so that the kernel shares connections out.
    package enum PortSharing: Hashable, Sendable {
        /// No other socket.
        case none
        /// The first of several: fails where any other socket listens, and lets those of `join` in afterwards.
        case begin
        /// Another one beside those that share already (`SO_REUSEPORT`).
        case join
    }

    package var portSharing = PortSharing.none
    /// Permission bits of a Unix socket's file.
    package var mode: UInt32 = 0o660
    /// An IPv6 socket takes IPv4 connections too; off, it takes only its own family.
    package var dualStack = false

    package init() {}
}

/// Differentiated services code point of a connection's packets, six bits (RFC 2474 §3), by which routers prioritise.
///
/// The raw value is the code point; RFC 4594 §2.3 lists their uses.
package enum TrafficClass: UInt8, CaseIterable, Hashable, Sendable {
    /// As all traffic that says nothing.
    case standard = 0
    /// CS1: may be slower than all other.
    case lowPriority = 8
    /// AF21: interactive requests.
    case lowLatency = 18
    /// AF31: sound and pictures with a buffer before them.
    case streaming = 26
    /// CS4: games, and what else answers at once.
    case interactive = 32
    /// AF41: video conferencing.
    case conferencing = 34
    /// CS5: about calls, and not the calls themselves.
    case signaling = 40
    /// EF: telephony.
    case telephony = 46

    /// The socket option that marks a connection with `peer`; `nil` for one over a Unix socket.
    ///
    /// The two bits beside the code point are the system's, which keeps its own there for TCP (RFC 3168 §5).
    package func socketOption(toward peer: SocketAddress) -> (level: Int32, name: Int32, value: Int32)? {
        let value = Int32(self.rawValue) << 2
        return switch peer {
        case .ipv4: (Int32(IPPROTO_IP), IP_TOS, value)
        case .ipv6: (Int32(IPPROTO_IPV6), IPV6_TCLASS, value)
        case .unix: nil
        }
    }
}

extension ContinuousInstant {
    package static var now: ContinuousInstant { ContinuousInstant(nanoseconds: sluice_boottime_nanoseconds()) }
}
