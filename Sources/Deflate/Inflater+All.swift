extension Inflater {
    /// Inflates all of `input`, as the next piece of the stream.
    ///
    /// - Parameter limit: most bytes of output accepted; exactly as many are still fine. Never is more memory taken
    ///   than twice that.
    /// - Returns: everything that `input` gives. Bytes behind the end of the stream are ignored; for raw streams they
    ///   are further blocks (see `continuePastEnd()`).
    /// - Throws: `.limitPassed` as soon as byte `limit + 1` exists; the failures of `inflate` otherwise.
    package func inflateAll(_ input: RawSpan, limit: Int) throws(InflateFailure) -> [UInt8] {
        let limit = max(limit, 0)
        // Three times the input is common for text; doubling from there finds the rest.
        var output = [UInt8](repeating: 0, count: min(limit, max(256, input.byteCount.multipliedOrLargest(by: 3))))
        var consumed = 0
        var written = 0
        while true {
            switch try self.inflate(input, consumed: &consumed, into: &output, written: &written) {
            case .streamEnd where self.format == .raw && consumed < input.byteCount:
                self.continuePastEnd()
            case .needsInput, .streamEnd:
                output.removeLast(output.count - written)
                return output
            case .outputFull where output.count < limit:
                let growth = min(limit - output.count, max(output.count, 256))
                output.append(contentsOf: repeatElement(0, count: growth))
            case .outputFull:
                try self.expectNothingMore(input, &consumed)
                return output
            }
        }
    }

    private func inflate(
        _ input: RawSpan, consumed: inout Int, into output: inout [UInt8], written: inout Int
    ) throws(InflateFailure) -> InflateProgress {
        var elements = output.mutableSpan
        var bytes = unsafe elements.mutableBytes
        return try self.inflate(input, consumed: &consumed, into: &bytes, written: &written)
    }

    /// The room is exactly used up: one byte more decides whether the limit is passed.
    private func expectNothingMore(_ input: RawSpan, _ consumed: inout Int) throws(InflateFailure) {
        while true {
            var probe: [UInt8] = [0]
            var written = 0
            let progress = try self.inflate(input, consumed: &consumed, into: &probe, written: &written)
            guard written == 0 else { throw .limitPassed }
            guard progress == .streamEnd, self.format == .raw, consumed < input.byteCount else { return }
            self.continuePastEnd()
        }
    }
}

extension Int {
    fileprivate func multipliedOrLargest(by factor: Int) -> Int {
        let (product, overflows) = self.multipliedReportingOverflow(by: factor)
        return overflows ? .max : product
    }
}
