import CZlib

/// Turns compressed bytes back, as many or as few at a time as there are, never writing beyond the room it is given.
///
/// Costs about 7 KiB, and the window (2 to the power of the window bits) from the first output that must be
/// remembered on.
@safe
package final class Inflater {
    package let format: DeflateFormat
    /// The largest distance that the stream may reach back, as a power of two, 8 to 15.
    package let windowBits: Int
    /// On the heap since zlib remembers its address.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Parameter windowBits: brought into 8...15. At least what the sender has: a stream that reaches back further
    ///   is corrupt. Below 15 zlib notices that only where it reaches back beyond the output of the same call too.
    /// - Returns: `nil` when there is no memory.
    package init?(format: DeflateFormat, windowBits: Int = 15) {
        self.format = format
        self.windowBits = min(max(windowBits, 8), 15)
        unsafe self.stream = .allocate(capacity: 1)
        unsafe self.stream.initialize(to: z_stream())
        let result = unsafe inflateInit2_(
            self.stream, format.windowBitsForZlib(self.windowBits), ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard result == Z_OK else { return nil }
    }

    deinit {
        // Harmless where the initializer failed: zlib then finds no state to free.
        unsafe inflateEnd(self.stream)
        unsafe self.stream.deinitialize(count: 1)
        unsafe self.stream.deallocate()
    }

    /// Back to the start of a stream, with nothing remembered; keeps its memory.
    package func reset() {
        unsafe inflateReset(self.stream)
    }

    /// After `.streamEnd` of a raw stream: expects further blocks, which may still refer to what came before.
    ///
    /// In permessage-deflate a block marked as the last one does not end anything (RFC 7692 §7.2.3.4).
    package func continuePastEnd() {
        unsafe inflateResetKeep(self.stream)
    }

    /// Whether the input so far ends with a whole block, and at the end of a byte.
    package var isBetweenBlocks: Bool {
        // zlib tells it here: 128 right behind a block, and in the lowest bits how many bits wait for the next.
        let state = unsafe self.stream.pointee.data_type
        return state & 0x80 != 0 && state & 0x1F == 0
    }

    /// Inflates `input` from offset `consumed` on into `output` from offset `written` on, and advances both.
    ///
    /// Call again with more input after `.needsInput`, with more room after `.outputFull`.
    /// - Throws: `.corrupt`, `.dictionaryRequired` or `.outOfMemory`; what was written until then is counted in
    ///   `written`.
    package func inflate(
        _ input: RawSpan, consumed: inout Int, into output: inout MutableRawSpan, written: inout Int
    ) throws(InflateFailure) -> InflateProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        while true {
            guard written < output.byteCount else { return .outputFull }
            let result = self.step(input, &consumed, &output, &written)
            switch result {
            case Z_STREAM_END: return .streamEnd
            // No progress was possible: with room left, only input can be what is missing.
            case Z_BUF_ERROR: return .needsInput
            case Z_OK:
                // A turn takes 4 GiB at most, so there may be more on both sides.
                if written < output.byteCount, consumed == input.byteCount { return .needsInput }
            default: throw self.failure(result)
            }
        }
    }

    private func step(
        _ input: RawSpan, _ consumed: inout Int, _ output: inout MutableRawSpan, _ written: inout Int
    ) -> Int32 {
        unsafe input.withUnsafeBytes { source in
            unsafe output.withUnsafeMutableBytes { target in
                let taken = unsafe self.stream.setInput(source, from: consumed)
                let room = unsafe self.stream.setOutput(target, from: written)
                let result = unsafe CZlib.inflate(self.stream, Z_SYNC_FLUSH)
                consumed += unsafe taken - Int(self.stream.pointee.avail_in)
                written += unsafe room - Int(self.stream.pointee.avail_out)
                unsafe self.stream.clearBuffers()
                return result
            }
        }
    }

    private func failure(_ result: Int32) -> InflateFailure {
        switch result {
        case Z_NEED_DICT: return .dictionaryRequired
        case Z_MEM_ERROR: return .outOfMemory
        default:
            let reason = unsafe self.stream.pointee.msg.map { unsafe String(cString: $0) }
            return .corrupt(reason: reason ?? "zlib result \(result)")
        }
    }

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
            guard written == 0 else { throw .limitExceeded }
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

/// Why the inflater stopped.
package enum InflateProgress: Equatable, Sendable {
    /// All input is used up and everything that it gives is written.
    case needsInput
    /// The output has no room left; there may be more to come, even without further input.
    case outputFull
    /// The last block of the stream is done; input behind it is untouched. See `Inflater.continuePastEnd()`.
    case streamEnd
}

/// Why compressed bytes could not be turned back. The inflater then needs a `reset()` before it is of use again.
package enum InflateFailure: Error, Equatable, Sendable {
    /// The bytes are not what the format allows; the reason is zlib's own text, for a log.
    case corrupt(reason: String)
    /// The stream was made with a preset dictionary, which nobody has agreed on with us.
    case dictionaryRequired
    /// There is more output than the limit given.
    case limitExceeded
    /// No memory for the window.
    case outOfMemory
}
