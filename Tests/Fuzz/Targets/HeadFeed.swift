import WebSocketProtocol

/// Everything that a parser of heads found in a stream, and where.
struct HeadFeed<Head: Equatable>: Equatable {
    private(set) var heads: [Head] = []
    /// Where each head ended, in bytes from the start of the stream.
    private(set) var ends: [Int] = []
    private(set) var violation: HeadViolation?
    /// Bytes taken, those of an unfinished head included.
    private(set) var consumed = 0

    /// - Parameter parse: as the parsers do it: advances the offset in the piece.
    init(
        _ pieces: [[UInt8]], limits: HeadLimits, by parse: ([UInt8], inout Int) throws(HeadViolation) -> Head?
    ) throws(InvariantViolation) {
        for piece in pieces where self.violation == nil { try self.feed(piece, by: parse) }
        let longest = zip([0] + self.ends, self.ends + [self.consumed]).map { $1 - $0 }.max() ?? 0
        let most = limits.byteCount + (self.violation == nil ? 0 : 1)
        try InvariantViolation.expect(longest <= most, "took \(longest) bytes for one head")
        guard let violation = self.violation else { return }
        for piece in [[], [0x0D, 0x0A, 0x0D, 0x0A]] as [[UInt8]] {
            try InvariantViolation.expect(
                self.refusal(of: piece, by: parse) == violation, "another answer after \(violation)")
        }
    }

    private mutating func feed(
        _ piece: [UInt8], by parse: ([UInt8], inout Int) throws(HeadViolation) -> Head?
    ) throws(InvariantViolation) {
        var offset = 0
        do throws(HeadViolation) {
            while let head = try parse(piece, &offset) {
                self.heads.append(head)
                self.ends.append(self.consumed + offset)
            }
        } catch {
            self.violation = error
        }
        self.consumed += offset
        try InvariantViolation.expect(self.violation != nil || offset == piece.count, "left bytes without a head")
    }

    private func refusal(
        of piece: [UInt8], by parse: ([UInt8], inout Int) throws(HeadViolation) -> Head?
    ) -> HeadViolation? {
        var offset = 0
        do throws(HeadViolation) {
            _ = try parse(piece, &offset)
            return nil
        } catch {
            return error
        }
    }

    /// The one response that `bytes` are, with whatever body.
    static func response(_ bytes: [UInt8]) -> ResponseHead? {
        var parser = ResponseParser()
        var offset = 0
        return try? parser.parse(bytes.span.bytes, consumed: &offset)
    }
}
