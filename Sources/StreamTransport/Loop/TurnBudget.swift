/// Shares the work of one turn among the connections that are ready in it, so that none delays the others: a read of a
/// few KiB may inflate to hundreds of MB, or hold tens of thousands of messages.
///
/// The unit of work is about a nanosecond: a byte scanned, copied or masked costs one.
package struct TurnBudget {
    /// Work of one connection in a turn: about a millisecond.
    package static let share = 1 << 20
    /// Work of all connections in a turn before shares become small.
    package static let turn = 4 << 20
    /// Share of a connection after that: enough to make progress.
    package static let smallShare = 64 << 10

    /// A frame, a message or a part of one, without its bytes.
    package static let frame = 256
    /// A frame that is forwarded unchanged.
    package static let forwardedFrame = 128
    /// A TLS record, without its bytes.
    package static let record = 1024
    /// A TLS handshake of either role.
    package static let handshake = 512 << 10
    /// Compressing or inflating a piece, without its bytes.
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

    /// - Parameter unspent: remainder of the share granted last; negative if it was exceeded.
    /// - Returns: the next share.
    package mutating func nextShare(unspent: Int) -> Int {
        self.left -= self.granted - unspent
        self.granted = max(Self.smallShare, min(Self.share, self.left))
        return self.granted
    }

    /// Whether the turn has begun to give small shares.
    package var isSpent: Bool {
        self.left <= 0
    }
}
