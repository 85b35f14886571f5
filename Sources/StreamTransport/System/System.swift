import ByteKernels

/// Everything a loop needs of the operating system: readiness, sockets, the clock.
///
/// One object belongs to one loop. `LinuxSystem` makes the calls; a simulation answers them from a seeded network in
/// virtual time. Because this seam is so low, the loop, the connections and everything above run unchanged on both.
///
/// Results of transfers are counts, or a negated error number: no allocation and no throw on the hot path. Every call
/// but `wake()` is made on the loop's thread.
package protocol System: AnyObject {
    /// The clock, read afresh.
    func now() -> MonotonicInstant

    /// Milliseconds since 1970-01-01T00:00:00Z. Unlike `now()`, it can be set, and advances while the machine sleeps.
    func wallClockMilliseconds() -> Int64

    /// Waits until something watched is ready, `deadline` has passed (`nil`: no deadline) or `wake()` was called,
    /// whichever is first. Replaces the contents of `events` (at most its capacity). A deadline in the past polls.
    func wait(_ events: inout ReadyEvents, until deadline: MonotonicInstant?)

    /// Ends the current or the next `wait`. Callable from any thread, and cheap when called again before the loop woke.
    func wake()

    /// Starts to watch `descriptor`; events carry `token`. Hang-up and error are always reported.
    func watch(_ descriptor: Descriptor, for interest: Interest, token: UInt64) -> SystemError?
    func rewatch(_ descriptor: Descriptor, for interest: Interest, token: UInt64)
    func unwatch(_ descriptor: Descriptor)

    /// Opens a bound, listening, non-blocking socket.
    func listen(_ address: SocketAddress, options: ListenOptions) -> Result<Descriptor, SystemError>

    /// Takes one waiting connection, non-blocking, close-on-exec. `EAGAIN` when none waits; `EMFILE`/`ENFILE` when
    /// descriptors are exhausted.
    func accept(_ listener: Descriptor) -> Result<AcceptedSocket, SystemError>

    /// Begins to connect a non-blocking socket; writable means decided, `connectError` then says how. A failure is this
    /// machine's own: nothing was sent.
    func connect(_ address: SocketAddress, _ options: ConnectOptions) -> Result<Descriptor, SystemError>
    func connectError(_ descriptor: Descriptor) -> SystemError?

    /// Bytes read; 0 at end of input; a negated error number.
    func receive(_ descriptor: Descriptor, into buffer: inout MutableRawSpan) -> Int
    /// Bytes taken by the kernel, or a negated error number.
    func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int
    /// As `send`, of `head` followed by `bytes`, in one call.
    func send(_ descriptor: Descriptor, _ head: LeadingBytes, _ bytes: RawSpan) -> Int
    /// As `send`, from several pieces in one call.
    /// - Parameter skipping: bytes of the first piece that were sent already.
    func send(_ descriptor: Descriptor, pieces: [[UInt8]], skipping: Int) -> Int

    /// From so many bytes on in one read, the next is worth `pass`.
    var spliceThreshold: Int { get }
    /// Takes at most `count` bytes from one connection and gives them to another, as `receive` and `send` would, but
    /// without their coming into the process.
    /// - Returns: `nil` where that cannot be done, with nothing taken.
    func splice(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> SplicedBytes?
    /// Fetches of what the target of the last `pass` did not take as much as fits.
    /// - Returns: the bytes; 0 when nothing is left.
    func drainSplicePipe(into buffer: inout MutableRawSpan) -> Int

    /// Gives bytes of a file to a connection without their coming into the process, as many as the kernel takes now.
    /// - Returns: their number, 0 at the end of the file; `nil` where that cannot be done now, with nothing sent.
    func sendFile(_ file: OpenFile, from offset: Int64, atMost count: Int, to target: Descriptor) -> Int?

    /// Sends FIN after all bytes written.
    func shutdownOutput(_ descriptor: Descriptor) -> SystemError?
    /// Refuses further input (`SHUT_RD`).
    func shutdownInput(_ descriptor: Descriptor) -> SystemError?
    /// Closes; bytes that the kernel took are still delivered.
    func close(_ descriptor: Descriptor)
    /// Closes with RST: undelivered bytes are discarded, and the peer sees that the end was not clean.
    func reset(_ descriptor: Descriptor)

    func localAddress(_ descriptor: Descriptor) -> SocketAddress?
    func peerAddress(_ descriptor: Descriptor) -> SocketAddress?
    /// Applies to a connection, or to a listener for the connections that it takes from then on, which inherit. Options that
    /// a socket's family lacks are passed over.
    func apply(_ options: SocketOptions, to descriptor: Descriptor) -> SystemError?
    /// Sets `SocketOptions.userTimeout` alone; `nil` takes it away.
    func setUserTimeout(_ timeout: Duration?, of descriptor: Descriptor)
    /// Limits the bytes that the kernel accepts but has not sent yet (`TCP_NOTSENT_LOWAT`); later output waits in the
    /// process.
    func setUnsentLimit(_ limit: Int, of descriptor: Descriptor)

    /// Whether bytes were received that are not read yet.
    func hasUnreadInput(_ descriptor: Descriptor) -> Bool
    /// Bytes that the kernel took and the peer has not acknowledged, or on a Unix socket not read; `nil` where that is
    /// unknown.
    func unacknowledgedBytes(of descriptor: Descriptor) -> Int?
    /// Why a connection's output does not progress; `nil` if unknown.
    func outputHold(of descriptor: Descriptor) -> OutputHold?

    /// Whether a connection may take a descriptor now, so that a lookup for one is worth its while.
    var hasDescriptors: Bool { get }

    /// How packets to `address` would be sent now.
    /// - Parameter interface: only through this one; `nil` for any.
    func route(to address: SocketAddress, through interface: UInt32?) -> Result<Route, SystemError>
    /// Opens a socket that receives a datagram of `RouteMessages` whenever the ways to addresses may have changed.
    func openPathNotifications() -> Result<Descriptor, SystemError>
    /// None of an interface that does not exist.
    /// - Parameter metered: names of interfaces that are expensive, unless the user declares them otherwise.
    func classes(ofInterface interface: UInt32, metered: Set<String>) -> InterfaceClasses
    /// Where the system's message bus would be (D-Bus); `nil` for none.
    var systemBus: SocketAddress? { get }
    /// Interfaces that are up, without loopback, those known to have a link first; at most `PathChoice.interfaceLimit`.
    var usableInterfaces: [UInt32] { get }
    /// Whether an interface is up and has a link; `true` if that is unknown.
    func isUsable(interface: UInt32) -> Bool
    /// Whether a connection uses Multipath TCP.
    func isMultipath(_ descriptor: Descriptor) -> Bool

    /// Looks up `host` away from the loop and calls back on it, at most once; `deadline` bounds the wait.
    func resolve(
        _ host: String, port: UInt16, completion: @escaping (Result<[SocketAddress], ResolutionFailure>) -> Void
    )
        -> ResolutionToken
    /// After this the completion of `ticket` is never called.
    func cancelResolution(_ ticket: ResolutionToken)

    /// The file of a Unix socket; `nil` where there is none, and for an abstract name.
    func socketFile(at path: String) -> SocketFile?

    /// Takes away the file of a Unix socket, unless another has its path by now. Called before the socket is closed, since
    /// a file that is made afterwards may get the same number.
    func remove(_ file: SocketFile)

    /// Sets the permission bits of a Unix socket's file; does nothing where there is none.
    func setMode(_ mode: UInt32, ofSocketFile path: String) -> SystemError?

    /// Random words, 1 to 32 of them, fit for masking keys: from the kernel's generator unless a system says otherwise.
    func randomWords(_ count: Int) -> [UInt64]
}

extension System {
    package func connect(_ address: SocketAddress) -> Result<Descriptor, SystemError> {
        self.connect(address, ConnectOptions())
    }

    package func sendFile(_ file: OpenFile, from offset: Int64, atMost count: Int, to target: Descriptor) -> Int? {
        nil
    }

    /// Reads once, at most `limit` bytes.
    package func receive(_ descriptor: Descriptor, atMost limit: Int) -> ReceivedBytes {
        var bytes = [UInt8](repeating: 0, count: max(1, limit))
        let result = bytes.withMutableRawSpan { self.receive(descriptor, into: &$0) }
        if result == 0 { return .end }
        guard result > 0 else { return .failed(SystemError(Int32(truncatingIfNeeded: -result))) }
        bytes.removeLast(bytes.count - result)
        return .bytes(bytes)
    }

    /// Writes once.
    /// - Returns: how many bytes, from the first on, the kernel took.
    package func send(_ descriptor: Descriptor, _ bytes: ArraySlice<UInt8>) -> Result<Int, SystemError> {
        let taken = Array(bytes).withRawSpan { self.send(descriptor, $0) }
        return taken >= 0 ? .success(taken) : .failure(SystemError(Int32(truncatingIfNeeded: -taken)))
    }
}

/// How a socket is opened for connecting.
package struct ConnectOptions: Hashable, Sendable {
    /// Multipath TCP where the kernel has it. Default: false.
    package var usesMultipath = false
    /// The only interface that is used. Default: `nil`, the one that the kernel chooses.
    package var interface: UInt32?

    package init() {}
}

/// Events of a descriptor.
package struct Interest: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let readable = Interest(rawValue: 1)
    package static let writable = Interest(rawValue: 2)
    /// Always reported: both directions ended, or the connection failed.
    package static let hangUp = Interest(rawValue: 4)
}

/// Result of one `wait`: tokens of ready descriptors with their events. Made once per loop and reused.
package struct ReadyEvents {
    package struct Event: Hashable, Sendable {
        package let token: UInt64
        package let ready: Interest

        @inlinable
        package init(token: UInt64, ready: Interest) {
            self.token = token
            self.ready = ready
        }
    }

    /// Most events taken in one turn; more stay ready and are taken in the next.
    package static let capacity = 256

    private var slots = [Event](repeating: Event(token: 0, ready: []), count: ReadyEvents.capacity)
    package private(set) var count = 0

    package init() {}

    package subscript(index: Int) -> Event {
        self.slots[index]
    }

    /// The events themselves, in their order.
    package var events: ArraySlice<Event> {
        self.slots[..<self.count]
    }

    package mutating func removeAll() {
        self.count = 0
    }

    /// Adds an event; one beyond the capacity is dropped, and stays ready.
    package mutating func append(_ event: Event) {
        guard self.count < Self.capacity else { return }
        self.slots[self.count] = event
        self.count += 1
    }

    /// Changes their order.
    package mutating func shuffle(using generator: inout some RandomNumberGenerator) {
        self.slots[..<self.count].shuffle(using: &generator)
    }
}

/// Result of one read in owned bytes, for slow paths that are not worth a lent buffer.
package enum ReceivedBytes: Hashable, Sendable {
    case bytes([UInt8])
    /// The end of input.
    case end
    case failed(SystemError)
}

/// Result of moving bytes from one connection to another within the kernel.
package struct SplicedBytes: Equatable, Sendable {
    /// Bytes taken from the source; 0 at its end of input; a negated error number.
    package let received: Int
    /// Of these the bytes that the target took, or a negated error number if it took none. The rest is held by the system
    /// and waits to be fetched by `drainSplicePipe`.
    package let sent: Int

    package init(received: Int, sent: Int) {
        self.received = received
        self.sent = sent
    }
}

/// A connection taken off a listener.
package struct AcceptedSocket: Hashable, Sendable {
    package let descriptor: Descriptor
    package let peer: SocketAddress
    /// Where the peer reached us, if that is known without asking the system.
    package internal(set) var local: SocketAddress?

    @inlinable
    package init(descriptor: Descriptor, peer: SocketAddress) {
        self.descriptor = descriptor
        self.peer = peer
    }
}

/// A file descriptor. The type owns nothing: its holder documents who closes it.
package struct Descriptor: Hashable, Sendable {
    package let number: Int32

    @inlinable
    package init(_ number: Int32) {
        self.number = number
    }
}
