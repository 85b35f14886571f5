/// Shares the work of one turn among the connections that have something to do in it, so that none of them keeps the
/// others waiting: a read of a few KiB may stand for hundreds of MB inflated, or for tens of thousands of messages.
///
/// Work is counted in units of about a nanosecond: a byte looked at, copied or masked costs one.
package struct TurnBudget {
    /// What one connection may spend in a turn: about a millisecond.
    package static let share = 1 << 20
    /// What all of them may spend before shares become small.
    package static let turn = 4 << 20
    /// The share of those whose turn comes after that: enough to go on.
    package static let smallShare = 64 << 10

    /// A frame, a message or a part of one, beside its bytes.
    package static let frame = 256
    /// A frame that goes over as it is.
    package static let forwardedFrame = 128
    /// A TLS record, beside its bytes.
    package static let record = 1024
    /// A TLS handshake, of whichever side.
    package static let handshake = 512 << 10
    /// Compressing or inflating a piece, beside its bytes.
    package static let compression = 2048
    /// A byte compressed.
    package static let compressedByte = 16
    /// A byte inflated.
    package static let inflatedByte = 2

    private var left = TurnBudget.turn
    private var granted = TurnBudget.share

    package init() {}

    /// - Returns: the first share of a new turn.
    package mutating func beginTurn() -> Int {
        self = TurnBudget()
        return self.granted
    }

    /// - Parameter unspent: what is left of the share that was granted last; negative where it was exceeded.
    /// - Returns: the next share.
    package mutating func nextShare(unspent: Int) -> Int {
        self.left -= self.granted - unspent
        self.granted = max(Self.smallShare, min(Self.share, self.left))
        return self.granted
    }

    /// Whether the turn has come to the small shares.
    package var isSpent: Bool {
        self.left <= 0
    }
}
