import ByteKernels

/// Copies what one task carries to an observer. On the loop; it never waits.
package final class TaskTap {
    /// Bytes of a piece that are copied at most.
    private let pieceLimit: Int
    /// One message of so many is copied; of a stream, one piece.
    private let sampling: Int
    /// Whether a piece can be taken; otherwise it is counted as skipped.
    private let hasCapacity: () -> Bool
    private let take: (TapPiece) -> Void
    private let skipped: (Int) -> Void
    private var seen = 0
    private var takesReceived = false
    private var takesSent = false

    package init(
        pieceLimit: Int, sampling: Int, hasCapacity: @escaping () -> Bool, take: @escaping (TapPiece) -> Void,
        skipped: @escaping (Int) -> Void
    ) {
        self.pieceLimit = pieceLimit
        self.sampling = max(1, sampling)
        self.hasCapacity = hasCapacity
        self.take = take
        self.skipped = skipped
    }

    /// Nothing that passes now would be copied.
    var isFull: Bool { !self.hasCapacity() }

    /// Counts a piece that was spliced past the process.
    func skipPiece() {
        self.skipped(1)
    }

    func addPiece(
        _ way: TapPiece.Way, _ content: TapPiece.Content, _ bytes: RawSpan, startsMessage: Bool, endsMessage: Bool
    ) {
        if startsMessage { self.choose(way) }
        guard way == .received ? self.takesReceived : self.takesSent else {
            if endsMessage { self.skipped(1) }
            return
        }
        guard self.hasCapacity() else {
            self.skipped(1)
            // The rest of a message without its beginning would mean nothing.
            if way == .received { self.takesReceived = false } else { self.takesSent = false }
            return
        }
        var copy: [UInt8] = []
        if content != .frames { copy.append(bytes.extracting(0..<min(bytes.byteCount, self.pieceLimit))) }
        self.take(
            TapPiece(
                way: way, content: content, bytes: copy, count: bytes.byteCount, startsMessage: startsMessage,
                endsMessage: endsMessage))
    }

    private func choose(_ way: TapPiece.Way) {
        let takes = self.seen % self.sampling == 0
        self.seen &+= 1
        if way == .received { self.takesReceived = takes } else { self.takesSent = takes }
    }
}

/// A piece of what a connection carries, as an observer sees it.
package struct TapPiece: Sendable {
    package enum Way: String, Sendable {
        case received, sent
    }

    package enum Content: String, Sendable {
        case stream, text, binary
        /// Frames that are passed on as they are: only their size is known.
        case frames
    }

    /// Number among all pieces, skipped ones included; set by the receiver.
    package var number: UInt64 = 0
    /// Time in milliseconds since 1970-01-01T00:00:00Z; set by the receiver.
    package var at: Int64 = 0
    package let way: Way
    package let content: Content
    /// At most the tap's piece limit.
    package let bytes: [UInt8]
    /// Of the whole piece.
    package let count: Int
    package let startsMessage: Bool
    package let endsMessage: Bool
}
