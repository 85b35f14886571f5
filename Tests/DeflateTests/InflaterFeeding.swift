import Deflate

/// How an inflation ended, in full: to compare one way of feeding with another.
struct InflateOutcome: Equatable {
    var bytes: [UInt8] = []
    var failure: InflateFailure?
    var reachedEnd = false
}

extension Inflater {
    /// Inflates `pieces` in order, through rooms of `room` bytes, stopping where the stream ends, fails or passes
    /// `limit`.
    func feed(_ pieces: [[UInt8]], room: Int, limit: Int = .max) -> InflateOutcome {
        var outcome = InflateOutcome()
        for piece in pieces {
            var consumed = 0
            var progress = InflateProgress.outputFull
            while progress == .outputFull {
                var output = [UInt8](repeating: 0, count: room)
                var written = 0
                do {
                    progress = try self.step(piece, &consumed, &output, &written)
                } catch {
                    outcome.failure = error
                }
                outcome.bytes += output[..<written]
                outcome.reachedEnd = progress == .streamEnd
                if outcome.failure != nil || outcome.reachedEnd || outcome.bytes.count > limit { return outcome }
            }
        }
        return outcome
    }

    /// Inflates all of `input`; a final block does not end a raw stream.
    func inflateAll(_ input: [UInt8]) throws(InflateFailure) -> [UInt8] {
        var inflated: [UInt8] = []
        var consumed = 0
        while true {
            var output = [UInt8](repeating: 0, count: 4096)
            var written = 0
            let progress = try self.step(input, &consumed, &output, &written)
            inflated += output[..<written]
            switch progress {
            case .outputFull: continue
            case .streamEnd where self.format == .raw && consumed < input.count: self.continuePastEnd()
            case .needsInput, .streamEnd: return inflated
            }
        }
    }

    private func step(
        _ input: [UInt8], _ consumed: inout Int, _ output: inout [UInt8], _ written: inout Int
    ) throws(InflateFailure) -> InflateProgress {
        var elements = output.mutableSpan
        var room = elements.mutableBytes
        return try self.inflate(input.span.bytes, consumed: &consumed, into: &room, written: &written)
    }
}

extension [UInt8] {
    func cut(_ ranges: [Range<Int>]) -> [[UInt8]] { ranges.map { Array(self[$0]) } }
    var singleBytes: [[UInt8]] { self.map { [$0] } }
}
