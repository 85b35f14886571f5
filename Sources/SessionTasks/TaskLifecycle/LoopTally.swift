import StreamTransport
import WebSocketProtocol

/// What the tasks of one loop share: their masking keys, and what they count together. Touched on the loop alone.
package final class LoopTally {
    let keys: MaskingKeys
    /// Payload of messages that were received, in bytes; of frames that are passed on many at a time, their mean.
    package private(set) var messageSizes = Distribution()
    /// From our pings to their Pongs, in microseconds.
    package private(set) var roundTrips = Distribution()
    /// Whether each connection remembers how long its own pings took: only where somebody may ask.
    package var keepsRoundTrips = false

    private init(_ keys: MaskingKeys) {
        self.keys = keys
    }

    /// The loop's own.
    package static func shared(on loop: Loop) -> LoopTally {
        // Asked for first: making one of the loop's objects must not ask for another.
        let keys = MaskingKeys.shared(on: loop)
        return loop.local(LoopTally.self) { LoopTally(keys) }
    }

    func received(messageOf bytes: Int) {
        self.messageSizes.add(UInt64(clamping: bytes))
    }

    func answered(after duration: Duration) {
        self.roundTrips.add(duration)
    }
}
