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
    var passage: Passage?

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
        var event = unsafe epoll_event(events: EPOLLIN.rawValue, data: epoll_data(u64: Self.wakeToken))
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
                self.answerWake()
                continue
            }
            events.append(unsafe .init(token: event.data.u64, ready: Interest(epoll: event.events)))
        }
    }

    private func answerWake() {
        var count: eventfd_t = 0
        _ = unsafe eventfd_read(self.waker, &count)
        self.resolutions.deliver()
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
    ) -> ResolutionTicket {
        self.resolutions.resolve(host, port: port, completion: completion)
    }

    package func cancelResolution(_ ticket: ResolutionTicket) {
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
