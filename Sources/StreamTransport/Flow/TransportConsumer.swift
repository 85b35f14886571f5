/// Something that writes to a connection, and may keep bytes for its peer until the connection takes them.
package protocol OutputSource: AnyObject {
    /// Bytes that are kept so.
    var heldBytes: Int { get }
}

extension OutputSource {
    package var heldBytes: Int { 0 }
}

/// The owner of a transport: told what happens on it, always on the loop, never from inside one of its own calls to the
/// transport.
package protocol TransportConsumer: OutputSource {
    /// Offers all bytes that wait, in the loop's shared buffer: they may be changed in place and must be copied to be
    /// kept.
    ///
    /// A consumer counts its work with `Loop.spend`, and leaves the rest when `Loop.budgetIsSpent`.
    /// - Returns: how many were used. The rest is kept aside as it is then and offered again, in front of what comes
    ///   next: with the next bytes that arrive, after `resumeReading` if reading was paused meanwhile, or in the next turn
    ///   if the consumer's share of this one is used up.
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int

    /// Asked before a read that is likely a long one: whereto bytes may go without being offered; `nil` where they are
    /// wanted here. What goes there is told by `passedUnseen`.
    var unseenTarget: SocketConnection? { get }

    /// Instead of `bytesReceived`: so many bytes went to the `unseenTarget`, where `queued` wait now.
    func passedUnseen(_ count: Int, queued: Int)

    /// The peer finished sending, cleanly (FIN; under TLS a close_notify). All bytes before it were offered. Output is
    /// still open.
    func inputClosed()

    /// The kernel took queued bytes. Called only after a turn that left some waiting, or when `awaitProgress` asked for
    /// it.
    func outputProgressed()

    /// The connection is over. Called exactly once, last.
    func transportEnded(_ end: TransportEnd)
}

extension TransportConsumer {
    package var unseenTarget: SocketConnection? { nil }
    package func passedUnseen(_ count: Int, queued: Int) {}
}
