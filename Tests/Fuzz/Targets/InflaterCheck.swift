import ByteKernels
import Deflate

/// The first byte of the input gives the format and the window, the second the limit, the rest is the stream.
enum InflaterCheck {
    private enum End: Equatable {
        case limitReached
        case needsInput
        case streamEnd
        case failure(InflateFailure)
    }

    private struct Outcome: Equatable, CustomStringConvertible {
        var output: [UInt8] = []
        var end = End.needsInput
        /// Whether zlib's window is as large as distances can be.
        let hasWholeWindow: Bool

        var description: String { "\(self.output.count) bytes, then \(self.end)" }

        private var reachesTooFar: Bool {
            self.end == .failure(.corrupt(reason: "invalid distance too far back"))
        }

        /// A reference beyond a smaller window is still resolved within the output of the same call, so only the place of
        /// the failure of such a stream depends on the pieces.
        static func == (one: Outcome, other: Outcome) -> Bool {
            if one.output == other.output, one.end == other.end { return true }
            guard !one.hasWholeWindow else { return false }
            return one.reachesTooFar && other.output.starts(with: one.output)
                || other.reachesTooFar && one.output.starts(with: other.output)
        }
    }

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard bytes.count >= 2 else { return }
        let format = [DeflateFormat.raw, .zlib, .gzip][Int(bytes[0] & 3) % 3]
        let limit = Int(bytes[1]) << 6
        guard let inflater = Inflater(format: format, windowBits: 8 + Int(bytes[0] >> 2 & 7)) else { return }
        let stream = Array(bytes[2...])
        _ = try InputSplit.expectSame(stream, "inflated") { split throws(InvariantViolation) in
            let roomy = try self.inflate(split.pieces(of: stream), by: inflater, limit: limit, room: 4096)
            let narrow = try self.inflate(split.pieces(of: stream), by: inflater, limit: limit, room: 3)
            try InvariantViolation.expect(roomy == narrow, "\(split): \(narrow) with little room, \(roomy) with much")
            return roomy
        }
    }

    private static func inflate(
        _ pieces: [[UInt8]], by inflater: Inflater, limit: Int, room: Int
    ) throws(InvariantViolation) -> Outcome {
        inflater.reset()
        var outcome = Outcome(hasWholeWindow: inflater.windowBits == 15)
        for piece in pieces {
            var consumed = 0
            outcome.end = self.inflate(piece, &consumed, by: inflater, limit: limit, room: room, &outcome.output)
            try InvariantViolation.expect(outcome.output.count <= limit, "\(outcome.output.count) bytes of \(limit)")
            switch outcome.end {
            case .needsInput: try InvariantViolation.expect(consumed == piece.count, "left input, and wants more")
            case .limitReached, .streamEnd, .failure: return outcome
            }
        }
        return outcome
    }

    private static func inflate(
        _ piece: [UInt8], _ consumed: inout Int, by inflater: Inflater, limit: Int, room: Int, _ output: inout [UInt8]
    ) -> End {
        while output.count < limit {
            var buffer = [UInt8](repeating: 0, count: min(room, limit - output.count))
            var written = 0
            let result = buffer.withMutableRawSpan { target in
                piece.withRawSpan { source in
                    Result { () throws(InflateFailure) in
                        try inflater.inflate(source, consumed: &consumed, into: &target, written: &written)
                    }
                }
            }
            output += buffer.prefix(written)
            // How much is read after the last allowed byte depends on the pieces and does not matter.
            guard output.count < limit else { return .limitReached }
            switch result {
            case .failure(let failure): return .failure(failure)
            case .success(.outputFull): continue
            case .success(.needsInput): return .needsInput
            case .success(.streamEnd):
                guard inflater.format == .raw else { return .streamEnd }
                inflater.continuePastEnd()
                if consumed == piece.count { return .needsInput }
            }
        }
        return .limitReached
    }
}
