import StreamTransport

/// What the tasks of one loop count together. Touched on the loop alone.
package final class LoopTally {
    /// Payload of messages that were received, in bytes; of frames that are passed on many at a time, their mean.
    package private(set) var messageSizes = Distribution()
    /// From our pings to their Pongs, in microseconds.
    package private(set) var roundTrips = Distribution()

    /// The loop's own.
    package static func shared(on loop: Loop) -> LoopTally {
        loop.local(LoopTally.self) { LoopTally() }
    }

    func received(messageOf bytes: Int) {
        self.messageSizes.add(UInt64(clamping: bytes))
    }

    func answered(after duration: Duration) {
        self.roundTrips.add(duration)
    }
}
