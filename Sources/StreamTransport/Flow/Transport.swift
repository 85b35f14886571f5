import ByteKernels

/// One connection as tasks and tunnels know it: bytes in, orders out. Decides nothing.
///
/// Implementations: a socket on a loop, TLS over another transport, and an upgraded connection of the REST server. In each
/// an `InputGate` decides when input is offered.
/// Confined to its loop: every call and every callback happens on the loop's thread.
package protocol Transport: AnyObject {
    var loop: Loop { get }

    /// Receives the events. Held strongly until `transportEnded`, then released, so that no reference cycle outlives
    /// the connection.
    var consumer: (any TransportConsumer)? { get set }

    var localAddress: SocketAddress? { get }
    var peerAddress: SocketAddress? { get }

    /// Queues a copy of `bytes`. All writes of one turn leave in one call at its end. Ignored after `shutdownOutput`,
    /// `close` or the end.
    /// - Returns: `queuedBytes`, as every write method does, because writers nearly always need it.
    @discardableResult
    func write(_ bytes: RawSpan) -> Int

    /// As `write`, without the copy: lends `count` bytes to fill in place; `fill` says how many it used.
    @discardableResult
    func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int

    /// As `write`, of `head` followed by `bytes`.
    @discardableResult
    func write(_ head: LeadingBytes, _ bytes: RawSpan) -> Int

    /// Writes at once if nothing waits before it; queues what the kernel does not take. For a relay's single large
    /// write.
    @discardableResult
    func writeThrough(_ bytes: RawSpan) -> Int

    /// Bytes written that the kernel has not accepted yet, those of this turn included. No write is refused: the writer
    /// compares this with its watermark, pauses its source above it, and calls `awaitProgress`.
    var queuedBytes: Int { get }

    /// Of this connection's life: bytes given to `write`, and of those the bytes that the kernel took. A write is done
    /// when the second has reached what the first was after it.
    var writtenBytes: UInt64 { get }
    var sentBytes: UInt64 { get }

    /// How long output waited for the peer to read.
    var outputStall: OutputStall { get }

    /// How much of the output the peer has received; `nil` if unknown. Makes a system call: do not use it per message.
    var delivery: OutputDelivery? { get }
    /// The kernel takes no more than `limit` bytes before it has sent them: what must not wait long has at most so much
    /// before it there.
    func limitUnsent(to limit: Int)

    /// Requests one `outputProgressed` call when everything written so far is sent, possibly at the end of this turn.
    /// Needed by a writer that paused its source or waits for a write to complete: otherwise only a turn that leaves
    /// bytes queued is followed by a call.
    func awaitProgress()

    /// No `bytesReceived` until `resumeReading`; the peer is slowed by its own full window. Failures are still noticed.
    func pauseReading()
    /// Reads again; bytes that the consumer left are offered again first, in a later turn.
    func resumeReading()
    /// The plain socket that this is; `nil` where more than a socket is needed to send (TLS).
    var socket: SocketConnection? { get }

    /// Most bytes taken from the kernel in one read; bounds what a paused consumer can leave behind. Default: the
    /// loop's buffer.
    var readLimit: Int { get set }

    /// Ends output (FIN, or close_notify) after all queued bytes. Input continues.
    func shutdownOutput()
    /// Refuses further input; output continues.
    func shutdownInput()

    /// Ends the connection cleanly after all queued bytes. Input that still arrives is read and discarded for at most
    /// `linger`, so that the kernel does not answer it with a reset, which would destroy the last output; then the
    /// descriptor is closed. Queued bytes have the same time, starting again whenever the kernel accepts some: with
    /// `.zero`, only what it accepts in this turn leaves. Bytes that are left then are lost, and the peer gets a reset.
    func close(linger: Duration)
    /// Ends at once with a reset: the peer must not take this for a clean end. Queued bytes are thrown away.
    func reset()

    /// Hands the descriptor over with the bytes already read but not consumed, and forgets it. `nil` where there is no
    /// plain descriptor to give (TLS), bytes still wait to be written, or a consumer asks from within its
    /// `bytesReceived`: what that leaves unused is known only when it returned. Nothing is changed then.
    func detach() -> DetachedSocket?
}

extension Transport {
    package var socket: SocketConnection? { nil }

    /// None, where nothing is known of it.
    package var outputStall: OutputStall { OutputStall() }

    package var delivery: OutputDelivery? { nil }
    package func limitUnsent(to limit: Int) {}

    /// Bytes written that the peer has not received; where that is unknown, that the kernel has not accepted. Makes a
    /// system call.
    package var unacknowledgedBytes: Int {
        self.delivery.map { Int($0.written - $0.acknowledged) } ?? self.queuedBytes
    }

    @discardableResult
    package func write(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.write(reserving: head.count + bytes.byteCount) { head.write(before: bytes, into: &$0) }
    }
}

/// The peer's progress in receiving a connection's output. Bytes are those on the wire, encrypted ones under TLS.
package struct OutputDelivery: Equatable, Sendable {
    /// Bytes given to be sent, those that still wait included.
    package var written: Int64
    /// Of those the ones that the peer acknowledged.
    package var acknowledged: Int64
    /// Something waits for the peer to take more in.
    package var isHeldUp: Bool
    /// The peer's last announced receive window, in bytes; `nil` if unknown.
    package var window: Int?

    package init(written: Int64, acknowledged: Int64, isHeldUp: Bool, window: Int?) {
        self.written = written
        self.acknowledged = acknowledged
        self.isHeldUp = isHeldUp
        self.window = window
    }
}

/// Something that writes to a connection, and may keep bytes for its peer until the connection takes them.
package protocol OutputSource: AnyObject {
    /// Bytes that are kept so.
    var unconsumedBytes: Int { get }
}

extension OutputSource {
    package var unconsumedBytes: Int { 0 }
}

/// Owner of a transport. All calls are made on the loop, never from inside one of its own calls to the transport.
package protocol TransportConsumer: OutputSource {
    /// Offers all available bytes in the loop's shared buffer: they may be changed in place and must be copied to be
    /// kept.
    ///
    /// A consumer counts its work with `Loop.spend` and stops when `Loop.budgetIsSpent`.
    /// - Returns: number of bytes used. The rest is stored as it is now and offered again before later bytes: with the
    ///   next bytes that arrive, after `resumeReading` if reading was paused meanwhile, or in the next turn if the
    ///   consumer's share of this one is used up.
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int

    /// Socket to which input may be spliced instead of being offered; `nil` to receive it here. Read before a read that
    /// is likely long; `spliced` reports the moved bytes.
    var spliceTarget: SocketConnection? { get }

    /// Instead of `bytesReceived`: so many bytes went to the `spliceTarget`, which has `queued` bytes to send now.
    func spliced(_ count: Int, queued: Int)

    /// The peer finished sending, cleanly (FIN; under TLS a close_notify). All bytes before it were offered. Output is
    /// still open.
    func inputClosed()

    /// The kernel accepted queued bytes. Called after a turn that left some queued, or after `awaitProgress`.
    func outputProgressed()

    /// Whether input that is left unread when a write meets a reset is kept until reading resumes; otherwise the
    /// connection ends at once. Default: false, because a consumer may have paused reading until its output leaves.
    var keepsUnreadInput: Bool { get }

    /// A write met a reset: the peer takes nothing more, and output that was queued is lost. The connection ends when the
    /// input received before is read.
    func outputFailed()

    /// The connection is over. Called exactly once, last.
    func transportEnded(_ end: TransportEnd)
}

extension TransportConsumer {
    package var spliceTarget: SocketConnection? { nil }
    package func spliced(_ count: Int, queued: Int) {}
    package var keepsUnreadInput: Bool { false }
    package func outputFailed() {}
}

/// How a connection ended.
package enum TransportEnd: Hashable, Sendable {
    /// We closed it, after everything was sent and FIN was received or the linger time expired.
    case closed
    /// We reset it.
    case abandoned
    case failed(TransportFailure)
}

/// The world failed us: neither the peer's bytes nor our caller are to blame.
package enum TransportFailure: Error, Hashable, Sendable {
    /// The peer reset the connection (`ECONNRESET`, or `EPIPE` on a write).
    case reset
    /// The peer stopped answering: keep-alive or user timeout (`ETIMEDOUT`).
    case peerUnresponsive
    /// The peer vanished without close_notify: bytes may be missing (RFC 8446 §6.1).
    case truncated
    /// A deadline of ours passed in the named phase.
    case deadlinePassed(ConnectPhase)
    case nameResolution(ResolutionFailure)
    /// No process listens at the address.
    case refused
    /// No Unix socket has this path.
    case noSuchFile
    /// The address is none that we may connect to; nothing was sent.
    case notPermitted(SocketAddress)
    /// The address did not answer, or another machine said that it is out of reach.
    case unreachable(SystemError)
    /// This machine's own networks do not lead to the address; nothing was sent.
    case offline(OfflineCause)
    /// The endpoint accepts no connection: its queue is full, its file forbids it, its socket is of another kind.
    case unusableEndpoint(SystemError)
    /// This process or this machine lacks what a connection needs: descriptors, memory, local ports.
    case ownResources(SystemError)
    /// TLS failed.
    indirect case tls(LayerFailure)
    /// No connection was established through the proxy.
    indirect case proxy(LayerFailure)
    case system(SystemError)
}

/// Failure of a layer between socket and consumer, such as TLS or a proxy. This module knows none of these layers: the failure
/// keeps its own type for code that does.
package struct LayerFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package typealias Cause = Error & Hashable & Sendable & CustomStringConvertible

    package let cause: any Cause

    package init(_ cause: any Cause) {
        self.cause = cause
    }

    package static func == (left: LayerFailure, right: LayerFailure) -> Bool {
        AnyHashable(left.cause) == AnyHashable(right.cause)
    }

    package func hash(into hasher: inout Hasher) {
        self.cause.hash(into: &hasher)
    }

    package var description: String { self.cause.description }
}

/// A connection taken off its loop: the receiver now owns the descriptor.
package struct DetachedSocket: Sendable {
    package let descriptor: Descriptor
    /// Read from the descriptor already, and the first thing the new owner must look at.
    package let unread: [UInt8]
}
