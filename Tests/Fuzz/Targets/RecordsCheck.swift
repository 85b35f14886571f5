import TLSEngine

/// The first byte of the input selects the suite; the rest describes the records that a peer sends after the handshake,
/// encrypted with its key, in any split and with output buffers of any size.
enum RecordsCheck {
    private struct Seen: Equatable {
        var bytes: [UInt8] = []
        /// Where each event with bytes ended; empty where room decides over that.
        var ends: [Int] = []
        var end: RecordEvent?
    }

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let first = bytes.first else { return }
        let suite = RecordSuite.allCases[Int(first) % RecordSuite.allCases.count]
        let wire = RecordWire.make(suite, Array(bytes[1...]))
        for room in [20_000, 7] {
            try InputSplit.expectSame(wire, "room \(room)") { split throws(InvariantViolation) in
                try self.received(wire, split, suite, room)
            }
        }
    }

    private static func received(
        _ wire: [UInt8], _ split: InputSplit, _ suite: RecordSuite, _ room: Int
    ) throws(InvariantViolation) -> Seen {
        guard let reading = RecordWire.key(suite, .opening), let writing = RecordWire.key(suite, .sealing) else {
            throw InvariantViolation("no key")
        }
        let records = CompactRecordLayer(reading: reading, writing: writing)
        var seen = Seen()
        for piece in split.pieces(of: wire) where seen.end == nil {
            try self.feed(piece, records, room, &seen)
        }
        let isWritten = records.write([1, 2, 3].span.bytes, to: CiphertextBuffer())
        try InvariantViolation.expect(isWritten, "\(split): nothing can be written")
        return seen
    }

    private static func feed(
        _ piece: [UInt8], _ records: CompactRecordLayer, _ room: Int, _ seen: inout Seen
    ) throws(InvariantViolation) {
        var plaintext = [UInt8](repeating: 0, count: room)
        var position = 0
        while true {
            var span = plaintext.mutableSpan
            var target = span.mutableBytes
            guard let event = records.nextEvent(piece.span.bytes, at: &position, plaintext: &target) else { break }
            guard case .plaintext(let count) = event else {
                seen.end = event
                return
            }
            try InvariantViolation.expect((1...room).contains(count), "\(count) bytes in room for \(room)")
            seen.bytes += plaintext[..<count]
            seen.ends.append(seen.bytes.count)
        }
        try InvariantViolation.expect(position == piece.count, "\(piece.count - position) bytes were left over")
    }
}
