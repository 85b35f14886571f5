import ByteKernels
import WebSocketProtocol

/// The result of feeding a parser, to compare the ways of feeding.
struct HeadOutcome<Head: Equatable>: Equatable {
    var head: Head?
    var violation: HeadViolation?
    /// Bytes taken until the head was complete or refused.
    var consumed = 0
}

enum HeadFeeding {
    static func request(_ pieces: [[UInt8]], limits: HeadLimits = HeadLimits()) -> HeadOutcome<RequestHead> {
        var parser = RequestParser(limits: limits)
        return self.feed(pieces) { piece, consumed throws(HeadViolation) in
            try parser.parse(piece.span.bytes, consumed: &consumed)
        }
    }

    static func request(_ text: String, limits: HeadLimits = HeadLimits()) -> HeadOutcome<RequestHead> {
        self.request([Array(text.utf8)], limits: limits)
    }

    static func response(_ pieces: [[UInt8]]) -> HeadOutcome<ResponseHead> {
        var parser = ResponseParser()
        return self.feed(pieces) { piece, consumed throws(HeadViolation) in
            try parser.parse(piece.span.bytes, consumed: &consumed)
        }
    }

    static func response(_ text: String) -> HeadOutcome<ResponseHead> {
        self.response([Array(text.utf8)])
    }

    private static func feed<Head: Equatable>(
        _ pieces: [[UInt8]], into parse: ([UInt8], inout Int) throws(HeadViolation) -> Head?
    ) -> HeadOutcome<Head> {
        var outcome = HeadOutcome<Head>()
        for piece in pieces {
            var consumed = 0
            do throws(HeadViolation) {
                outcome.head = try parse(piece, &consumed)
            } catch {
                outcome.violation = error
            }
            outcome.consumed += consumed
            if outcome.head != nil || outcome.violation != nil { break }
        }
        return outcome
    }
}

extension [UInt8] {
    func cut(_ ranges: [Range<Int>]) -> [[UInt8]] { ranges.map { Array(self[$0]) } }
    var singleBytes: [[UInt8]] { self.map { [$0] } }
}
