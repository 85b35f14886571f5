import WebSocketProtocol

/// The first byte of the input is the setting, the rest the stream.
enum FramesCheck {
    private struct Relayed: Equatable {
        let scanned: RelayFeed.Log
        let forwarded: RelayFeed.Log

        /// How much of a frame with invalid text was forwarded before its detection depends on the split.
        static func == (one: Relayed, other: Relayed) -> Bool {
            guard case .violation(PeerViolation(.invalidUTF8))? = one.forwarded.marks.last?.mark else {
                return one.scanned == other.scanned && one.forwarded == other.forwarded
            }
            return one.scanned == other.scanned && one.forwarded.marks.dropLast() == other.forwarded.marks.dropLast()
                && one.forwarded.marks.last?.mark == other.forwarded.marks.last?.mark
        }
    }

    /// Less than the longest control frame: its header is then complete, or its payload under way.
    private static let mostKept = 138

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let first = bytes.first else { return }
        let setting = FrameSetting(first)
        let stream = Array(bytes[1...])
        let received = try InputSplit.expectSame(stream, "received") { split throws(InvariantViolation) in
            try self.received(stream, split, setting)
        }
        let ends = received.marks.filter(\.isEnd)
        try InvariantViolation.expect(
            ends.count <= 1 && ends.first == received.marks.last || ends.isEmpty, "more behind the end")
        let relayed = try InputSplit.expectSame(stream, "relayed") { split throws(InvariantViolation) in
            try self.relayed(stream, split, setting)
        }
        try InvariantViolation.expect(
            stream.starts(with: relayed.scanned.passedOn), "the scanner passed on something else")
        guard setting.deflate == nil else { return }
        try self.compare(relayed.forwarded, with: received, setting)
    }

    private static func received(
        _ stream: [UInt8], _ split: InputSplit, _ setting: FrameSetting
    ) throws(InvariantViolation) -> FrameLog {
        let feed = EngineFeed(setting)
        for piece in split.pieces(of: stream) { feed.feed(piece) }
        let inflated = feed.mostInflated
        try InvariantViolation.expect(feed.mostKept <= self.mostKept, "\(split): \(feed.mostKept) kept")
        try InvariantViolation.expect(
            inflated <= DeflateContext.outputCapacity, "\(split): \(inflated) inflated at once")
        return feed.log
    }

    private static func relayed(
        _ stream: [UInt8], _ split: InputSplit, _ setting: FrameSetting
    ) throws(InvariantViolation) -> Relayed {
        var feed = RelayFeed(setting)
        for piece in split.pieces(of: stream) { feed.feed(piece) }
        try InvariantViolation.expect(feed.mostKept <= self.mostKept, "\(split): \(feed.mostKept) kept by a relay")
        return Relayed(scanned: feed.scanned, forwarded: feed.forwarded)
    }

    /// A forwarder reports the same control frames and the same end as a receiver, and its output has the same meaning.
    private static func compare(
        _ forwarded: RelayFeed.Log, with received: FrameLog, _ setting: FrameSetting
    ) throws(InvariantViolation) {
        let told = forwarded.marks.map(\.mark)
        try InvariantViolation.expect(told == received.marksOfControl, "forwarder: \(told), engine: \(received.marks)")
        let behind = EngineFeed(setting)
        behind.feed(forwarded.passedOn)
        try InvariantViolation.expect(behind.log.marksOfControl.isEmpty, "let through: \(behind.log.marksOfControl)")
        try InvariantViolation.expect(received.payload.starts(with: behind.log.payload), "other data was let through")
    }
}
