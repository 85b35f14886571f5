import WireText

/// One head after the other, as far as the parser accepts them. A line ends in CR LF or LF (RFC 9112 §2.2).
enum ResponseHeadsCheck {
    /// Small, so that inputs reach it.
    private static let limit = 512

    private struct Outcome: Equatable, CustomStringConvertible {
        var ends: [Int] = []
        var statuses: [Int] = []
        var violation: HeadViolation?

        var description: String { "ends \(self.ends), statuses \(self.statuses), then \(self.violation as Any)" }
    }

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let found = try InputSplit.expectSame(bytes, "heads") { split throws(InvariantViolation) in
            self.scan(split.pieces(of: bytes))
        }
        var start = 0
        for (end, status) in zip(found.ends, found.statuses) {
            let head = bytes[start..<end]
            try InvariantViolation.expect(head.count <= self.limit, "a head of \(head.count) bytes")
            try InvariantViolation.expect((100...999).contains(status), "status \(status)")
            let endsInEmptyLine = head.suffix(2) == [0x0A, 0x0A] || head.suffix(3) == [0x0A, 0x0D, 0x0A]
            try InvariantViolation.expect(endsInEmptyLine, "a head that ends in no empty line")
            let bareReturn = zip(head, head.dropFirst()).first { $0 == 0x0D && $1 != 0x0A }
            try InvariantViolation.expect(bareReturn == nil, "a carriage return without a line feed")
            start = end
        }
    }

    private static func scan(_ pieces: [[UInt8]]) -> Outcome {
        var outcome = Outcome()
        var parser = ResponseParser(limits: HeadLimits(byteCount: self.limit))
        var before = 0
        do throws(HeadViolation) {
            for piece in pieces {
                var offset = 0
                while offset < piece.count, let head = try parser.parse(piece.span.bytes, consumed: &offset) {
                    outcome.ends.append(before + offset)
                    outcome.statuses.append(head.status)
                }
                before += piece.count
            }
        } catch {
            outcome.violation = error
        }
        return outcome
    }
}
